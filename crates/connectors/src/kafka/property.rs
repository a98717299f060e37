//! Which properties of librdkafka may be set by their own names.
//!
//! | property | in the server's configuration | over the API |
//! |---|---|---|
//! | that a key of ours says | no: one place for each thing | no |
//! | that this crate stands on, as `enable.auto.commit` | no | no |
//! | that is a secret | no: it would be shown to whoever sees the endpoint | no |
//! | that names a file, a program or a library | yes | no |
//! | any other | yes | yes |

use overtake_peer::Vault;

/// What a key of ours says.
const KEYS: [(&str, &str); 18] = [
    ("acks", "acks"),
    ("auto.offset.reset", "start"),
    ("bootstrap.servers", "brokers"),
    ("compression.codec", "compression"),
    ("compression.type", "compression"),
    ("enable.idempotence", "idempotence"),
    ("group.id", "group"),
    ("metadata.broker.list", "brokers"),
    ("request.required.acks", "acks"),
    ("sasl.mechanism", "sasl_mechanism"),
    ("sasl.mechanisms", "sasl_mechanism"),
    ("sasl.password", "password"),
    ("sasl.username", "username"),
    ("security.protocol", "security_protocol"),
    ("ssl.ca.location", "tls.ca_file"),
    ("ssl.certificate.location", "tls.cert_file"),
    ("ssl.key.location", "tls.key_file"),
    ("ssl.key.pem", "tls.key_file"),
];

/// What this crate stands on: offsets are committed when messages are safe here, and one producer is in no transaction.
const OURS: [&str; 4] =
    ["enable.auto.commit", "enable.auto.offset.store", "enable.partition.eof", "transactional.id"];

/// Endings of names that name something on the server.
const OF_THE_SERVER: [&str; 6] = [".location", ".path", ".paths", ".file", ".cmd", ".keytab"];
/// Beginnings of names that load or fetch something there.
const LOADED: [&str; 3] = ["plugin.", "ssl.engine", "ssl.provider"];

/// Whether a property may be set by its own name.
///
/// # Errors
/// Why not, as a phrase.
pub(super) fn check(vault: Vault, name: &str) -> Result<(), String> {
    let within = |why: String| Err(format!("`properties`: `{name}` {why}"));
    if let Some((_, key)) = KEYS.iter().find(|(property, _)| *property == name) {
        return within(format!("is said as `{key}`"));
    }
    if OURS.contains(&name) {
        return within("cannot be changed: what is safe stands on it".to_owned());
    }
    if name.contains("password") || name.contains("secret") {
        return within("would be shown to people".to_owned());
    }
    let is_of_the_server = OF_THE_SERVER.iter().any(|ending| name.ends_with(ending))
        || LOADED.iter().any(|beginning| name.starts_with(beginning))
        || name.starts_with("sasl.oauthbearer.");
    if vault.is_of_api() && is_of_the_server {
        return within(
            "names something on the server: say it in its configuration, not over the API".to_owned(),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_property_may_be_set_where_the_table_says_so() {
        for (name, in_file, over_api) in [
            ("group.id", false, false),
            ("enable.auto.commit", false, false),
            ("ssl.key.password", false, false),
            ("sasl.oauthbearer.client.secret", false, false),
            ("ssl.crl.location", true, false),
            ("plugin.library.paths", true, false),
            ("sasl.kerberos.kinit.cmd", true, false),
            ("sasl.oauthbearer.token.endpoint.url", true, false),
            ("client.id", true, true),
            ("message.max.bytes", true, true),
        ] {
            assert_eq!(check(Vault::ANY, name).is_ok(), in_file, "{name}");
            assert_eq!(check(Vault::OF_API, name).is_ok(), over_api, "{name}");
        }
    }
}
