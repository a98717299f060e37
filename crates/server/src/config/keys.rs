//! Every setting, declared once.

use std::path::PathBuf;

use overtake_connectors::{Endpoint, Source};
use serde::Deserialize;

use super::connectors::{Configured, EndpointTables, SourceTables, overlay};
use super::engine::{EngineKind, Replicas, SecretPlace, Urls};
use super::otlp::{Attributes, Collector, CollectorHeaders};
use super::queues::{ConfiguredQueue, QueueTables};
use super::value::{
    ByteSize, Count, HostNames, Listen, Listener, LogFilter, LogFormat, Millis, OnDamage, Share, Value,
    Watermark, Whole,
};
use super::{Key, Origin, Sourced};

/// Makes, of one list of settings: the sections with their values and origins, the layer a file is parsed into, and
/// the table of [`KEYS`].
macro_rules! settings {
    ($(
        $(#[doc = $about_section:literal])*
        $section:ident: $Section:ident / $Layer:ident {
            $( #[doc = $about:literal] $key:ident ($flag:literal): $Type:ty = $default:expr; )*
            $(
                [$part:ident: $Part:ident / $PartLayer:ident = $about_part:literal] {
                    $( #[doc = $part_about:literal] $part_key:ident ($part_flag:literal): $PartType:ty = $part_default:expr; )*
                }
            )*
        }
    )*) => {
        $(
            $(#[doc = $about_section])*
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct $Section {
                $( #[doc = $about] pub $key: Sourced<$Type>, )*
                $( #[doc = $about_part] pub $part: $Part, )*
            }

            #[derive(Debug, Default, Deserialize)]
            #[serde(deny_unknown_fields, default, expecting = "a table of settings")]
            struct $Layer {
                $( $key: Option<$Type>, )*
                $( $part: $PartLayer, )*
            }

            $(
                #[doc = $about_part]
                #[derive(Clone, Debug, PartialEq, Eq)]
                pub struct $Part {
                    $( #[doc = $part_about] pub $part_key: Sourced<$PartType>, )*
                }

                #[derive(Debug, Default, Deserialize)]
                #[serde(deny_unknown_fields, default, expecting = "a table of settings")]
                struct $PartLayer {
                    $( $part_key: Option<$PartType>, )*
                }
            )*
        )*

        /// Everything the server is told to be.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Config {
            $( $(#[doc = $about_section])* pub $section: $Section, )*
            /// Queues that are declared at start.
            pub queues: Vec<ConfiguredQueue>,
            /// Queues whose messages are sent to other systems.
            pub endpoints: Vec<Configured<Endpoint>>,
            /// Other systems whose messages are taken in.
            pub sources: Vec<Configured<Source>>,
            /// What still works and should be said in another way.
            pub warnings: Vec<String>,
        }

        /// What one source says: any value may be missing.
        #[derive(Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields, default, expecting = "a table of settings")]
        pub(super) struct Layer {
            $( $section: $Layer, )*
            pub(super) queues: QueueTables,
            endpoints: EndpointTables,
            sources: SourceTables,
        }

        /// The tables of a file that are no environment's.
        pub(super) const SECTIONS: &[&str] = &[$( stringify!($section), )* "queues", "endpoints", "sources"];

        /// Every setting but the queues, in the order of the file.
        pub const KEYS: &[Key] = &[
            $( $( Key {
                path: concat!(stringify!($section), ".", stringify!($key)),
                flag: $flag,
                kind: <$Type as Value>::KIND,
                about: $about,
                is_switch: <$Type as Value>::IS_SWITCH,
            }, )* $( $( Key {
                path: concat!(stringify!($section), ".", stringify!($part), ".", stringify!($part_key)),
                flag: $part_flag,
                kind: <$PartType as Value>::KIND,
                about: $part_about,
                is_switch: <$PartType as Value>::IS_SWITCH,
            }, )* )* )*
        ];

        impl Default for Config {
            fn default() -> Self {
                Self {
                    $( $section: $Section {
                        $( $key: Sourced { value: $default, origin: Origin::Default }, )*
                        $( $part: $Part {
                            $( $part_key: Sourced { value: $part_default, origin: Origin::Default }, )*
                        }, )*
                    }, )*
                    queues: Vec::new(),
                    endpoints: Vec::new(),
                    sources: Vec::new(),
                    warnings: Vec::new(),
                }
            }
        }

        impl Config {
            /// Takes over what a layer says, and nothing else.
            pub(super) fn overlay(&mut self, layer: Layer, origin: impl Fn(&[&str]) -> Origin) {
                $( $(
                    if let Some(value) = layer.$section.$key {
                        let origin = origin(&[stringify!($section), stringify!($key)]);
                        self.$section.$key = Sourced { value, origin };
                    }
                )*
                $( $(
                    if let Some(value) = layer.$section.$part.$part_key {
                        let origin = origin(&[stringify!($section), stringify!($part), stringify!($part_key)]);
                        self.$section.$part.$part_key = Sourced { value, origin };
                    }
                )* )* )*
                for (name, settings) in layer.queues {
                    let origin = origin(&["queues", &name]);
                    self.queues.retain(|queue| queue.name != name);
                    self.queues.push(ConfiguredQueue { name, settings, origin });
                }
                overlay(&mut self.endpoints, layer.endpoints, |name| origin(&["endpoints", name]));
                overlay(&mut self.sources, layer.sources, |name| origin(&["sources", name]));
            }

            /// Sets one value from text. `None` when there is no such setting.
            pub(super) fn set(&mut self, path: &str, text: &str, origin: Origin) -> Option<Result<(), String>> {
                match path {
                    $( $(
                        concat!(stringify!($section), ".", stringify!($key)) => {
                            Some(<$Type as Value>::read(text).map(|value| {
                                self.$section.$key = Sourced { value, origin };
                            }))
                        }
                    )*
                    $( $(
                        concat!(stringify!($section), ".", stringify!($part), ".", stringify!($part_key)) => {
                            Some(<$PartType as Value>::read(text).map(|value| {
                                self.$section.$part.$part_key = Sourced { value, origin };
                            }))
                        }
                    )* )* )*
                    _ => None,
                }
            }

            /// Every setting but the queues: its path, its value as TOML writes it, and where that came from.
            #[must_use]
            pub fn entries(&self) -> Vec<(&'static str, String, &Origin)> {
                vec![ $( $( (
                    concat!(stringify!($section), ".", stringify!($key)),
                    self.$section.$key.value.show(),
                    &self.$section.$key.origin,
                ), )* $( $( (
                    concat!(stringify!($section), ".", stringify!($part), ".", stringify!($part_key)),
                    self.$section.$part.$part_key.value.show(),
                    &self.$section.$part.$part_key.origin,
                ), )* )* )* ]
            }
        }
    };
}

settings! {
    /// The HTTP listener.
    http: Http / HttpLayer {
        #[doc = "Address and port to serve HTTP on; port 0 takes a free one."]
        listen ("http"): Listen = Listen::LOOPBACK;
        #[doc = "Address and port to serve HTTP under TLS on, with the certificate of the section tls; off: it is not served."]
        tls_listen ("https"): Listener = Listener(None);
        #[doc = "Largest body of one request; a larger one is refused with 413."]
        max_request_bytes ("max-request-bytes"): ByteSize = ByteSize(64 << 20);
        #[doc = "Host names under which clients or a proxy reach the broker, with or without a port; IP addresses, localhost and the machine's own name are always served. Empty: clients on other machines may use any name, clients on this machine no other."]
        hosts ("http-hosts"): HostNames = HostNames(Vec::new());
        #[doc = "Most connections at once; on further ones only health probes are answered, anything else gets 503."]
        max_connections ("http-max-connections"): Count = Count(10_000);
        #[doc = "How long a client may take to send the head of a request, and pause within a body; an idle connection is closed after it, too."]
        header_timeout_ms ("http-header-timeout-ms"): Millis = Millis(30_000);
    }
    /// The AMQP listener.
    amqp: Amqp / AmqpLayer {
        #[doc = "Address and port to serve AMQP 0-9-1 on; port 0 takes a free one; off: it is not served."]
        listen ("amqp"): Listener = Listener::AMQP;
        #[doc = "Address and port to serve AMQP under TLS on, with the certificate of the section tls; 5671 is where clients look."]
        tls_listen ("amqps"): Listener = Listener(None);
        #[doc = "Most connections at once; further ones wait."]
        max_connections ("amqp-max-connections"): Count = Count(20_000);
        #[doc = "Most channels of one connection."]
        max_channels ("amqp-max-channels"): Count = Count(2_047);
        #[doc = "How long a connection may be silent: the heartbeat that clients are asked for; they may ask for less. 0: for ever."]
        heartbeat_ms ("amqp-heartbeat-ms"): Millis = Millis(60_000);
        #[doc = "How long a client may take no byte although some wait for it; then it is disconnected, however silent it may be. One that reads slowly is not. 0: for ever."]
        send_timeout_ms ("amqp-send-timeout-ms"): Millis = Millis(60_000);
    }
    /// Certificates of the listeners under TLS. SIGHUP has the files read again, for connections to come.
    tls: Tls / TlsLayer {
        #[doc = "A PEM file with the broker's certificate and those between it and the authority."]
        cert_file ("tls-cert"): PathBuf = PathBuf::new();
        #[doc = "A PEM file with the key of that certificate."]
        key_file ("tls-key"): PathBuf = PathBuf::new();
        #[doc = "A PEM file with the authorities that sign certificates of clients, which then are who those say (EXTERNAL). Empty: none."]
        client_ca_file ("tls-client-ca"): PathBuf = PathBuf::new();
    }
    /// Who may come in first, and where it is written what administrators do.
    access: Access / AccessLayer {
        #[doc = "An administrator who is made at start unless there is a user of this name. Empty: none."]
        admin_user ("admin-user"): String = String::new();
        #[doc = "The file with the password of that administrator; a line break at its end does not count."]
        admin_password_file ("admin-password-file"): PathBuf = PathBuf::new();
        #[doc = "A file of definitions, ours or RabbitMQ's, that is imported at each start: what is there and the same stays as it is. Empty: none."]
        load_definitions ("load-definitions"): PathBuf = PathBuf::new();
        #[doc = "A file to which every administrative action is added, as a line of JSON. Empty: they are in the log only."]
        audit_file ("audit-file"): PathBuf = PathBuf::new();
        #[doc = "Whether endpoints and sources may connect to link-local addresses (169.254.0.0/16, fe80::/10) and to those where clouds serve metadata."]
        link_local_targets ("link-local-targets"): bool = false;
    }
    /// Where messages are kept.
    engine: Engine / EngineLayer {
        #[doc = "Where messages are kept: embedded, in a store on this machine; redis, on one server of Redis or Valkey; cluster, on a cluster of them."]
        kind ("engine"): EngineKind = EngineKind::Embedded;
        #[doc = "For redis the server, for cluster some of its nodes, of which one that answers is enough: HOST:PORT, or rediss://HOST:PORT under TLS."]
        nodes ("engine-nodes"): Urls = Urls::default();
        #[doc = "Who asks there, with a password. Empty: the user without a name."]
        username ("engine-username"): String = String::new();
        #[doc = "Where the password for them is: { file = \"…\" } or { env = \"…\" }; read for each connection."]
        password ("engine-password"): SecretPlace = SecretPlace(None);
        #[doc = "Replicas that must have a message before it is confirmed: as many as can be promoted. auto: 1 for cluster, 0 for redis."]
        replicas_acked ("engine-replicas-acked"): Replicas = Replicas(None);
        #[doc = "Whether it must be in the logs of them and of the primary, too (WAITAOF, from Redis 7.2 and Valkey 7.2 on)."]
        fsync_acked ("engine-fsync-acked"): bool = false;
        #[doc = "How often leases, delays and times to live that are over are looked for there, and heads of which no push came."]
        sweep_ms ("engine-sweep-ms"): Millis = Millis(1_000);
        [tls: EngineTls / EngineTlsLayer = "Whom to believe that they are the servers, where the URLs mean TLS."] {
            #[doc = "A PEM file with the authorities that sign certificates of the servers. Empty: this machine's."]
            ca_file ("engine-tls-ca"): PathBuf = PathBuf::new();
            #[doc = "A PEM file with the certificate to show them. Empty: none."]
            cert_file ("engine-tls-cert"): PathBuf = PathBuf::new();
            #[doc = "A PEM file with the key of that certificate."]
            key_file ("engine-tls-key"): PathBuf = PathBuf::new();
        }
    }
    /// The store on disk, of the embedded engine.
    store: Store / StoreLayer {
        #[doc = "The directory of the store. Unset: $STATE_DIRECTORY, else /var/lib/overtake, else $XDG_DATA_HOME/overtake."]
        data_dir ("data-dir"): PathBuf = PathBuf::from(super::around::SYSTEM_DIR);
        #[doc = "Loops and journals that virtual hosts are spread over, each for a core, 1 to 32; of a store that has some it never becomes less."]
        shards ("shards"): Count = Count(1);
        #[doc = "Size of one journal file."]
        segment_bytes ("segment-bytes"): ByteSize = ByteSize(64 << 20);
        #[doc = "Memory that waiting messages may take; beyond it the least urgent ones wait on disk only."]
        memory_bytes ("memory-bytes"): ByteSize = ByteSize(128 << 20);
        #[doc = "What to do when the store is damaged: refuse to start, or skip what is damaged and say so."]
        on_damage ("on-damage"): OnDamage = OnDamage::Refuse;
        #[doc = "With less free on its disk publishes are refused. 0: when it is full; auto: a twentieth of the disk, at most 256MiB."]
        disk_low_bytes ("disk-low-bytes"): Watermark = Watermark::AUTO;
        #[doc = "With more free on its disk they are taken again. auto: one and a half times disk_low_bytes."]
        disk_high_bytes ("disk-high-bytes"): Watermark = Watermark::AUTO;
    }
    /// Routes: who gets a copy of which message.
    routes: Routes / RoutesLayer {
        #[doc = "A manifest with the routes of the virtual host `/`, JSON or TOML, set at start and whenever the file changes. Empty: none."]
        file ("routes-file"): PathBuf = PathBuf::new();
    }
    /// Limits of every queue.
    limits: Limits / LimitsLayer {
        #[doc = "Largest message; a queue may allow less."]
        max_message_bytes ("max-message-bytes"): ByteSize = ByteSize(16 << 20);
        #[doc = "Time to live of messages that have none from anywhere else; 0 is for ever."]
        default_ttl_ms ("default-ttl-ms"): Millis = Millis(0);
    }
    /// Logs, on stderr.
    log: Log / LogLayer {
        #[doc = "What to log: error, warn, info, debug or trace, also per part as in `info,overtake_engine=debug`."]
        level ("log-level"): LogFilter = LogFilter::default();
        #[doc = "How to log: text for people, json for machines."]
        format ("log-format"): LogFormat = LogFormat::Text;
    }
    /// Metrics, and spans of traced messages, that are pushed to a collector; metrics are scraped at /metrics in any case. The variables of OpenTelemetry, such as
    /// OTEL_EXPORTER_OTLP_ENDPOINT, are heeded, too.
    telemetry: Telemetry / TelemetryLayer {
        #[doc = "Address of a collector that takes OTLP over HTTP, such as http://127.0.0.1:4318; off: nothing is pushed."]
        otlp_endpoint ("otlp-endpoint"): Collector = Collector(None);
        #[doc = "Headers for the collector, percent-encoded where need be; they are never shown."]
        otlp_headers ("otlp-headers"): CollectorHeaders = CollectorHeaders::default();
        #[doc = "How often everything is pushed."]
        otlp_interval_ms ("otlp-interval-ms"): Millis = Millis(60_000);
        #[doc = "Of the traces that publishers sample, this share is told to the collector, 0 to 1; 0: none, and no message is looked at."]
        traces_sample ("traces-sample"): Share = Share(0);
        #[doc = "Address of a page that shows a trace, with {trace_id} in it; answers about a traced message link to it. Empty: none."]
        trace_url ("trace-url"): String = String::new();
        #[doc = "The name of the service that the broker says it is (service.name)."]
        service_name ("service-name"): String = "overtake".to_owned();
        #[doc = "What else it says of itself, such as deployment.environment=prod, percent-encoded where need be."]
        resource_attributes ("resource-attributes"): Attributes = Attributes::default();
    }
    /// The process.
    server: Server / ServerLayer {
        #[doc = "How long a stopping server waits for requests that are under way, and a drain for what is leased unless it is told."]
        drain_timeout_ms ("drain-timeout-ms"): Millis = Millis(10_000);
        #[doc = "A file to write the bound addresses to, as JSON, once the server is ready. Empty: none."]
        ports_file ("ports-file"): PathBuf = PathBuf::new();
        #[doc = "Memory for messages on their way: in requests, in line to be stored, pushed to clients that have not taken them. auto: a quarter of what the process may have, 32MiB to 512MiB."]
        connection_memory_bytes ("connection-memory-bytes"): Watermark = Watermark::AUTO;
        [priority_lanes: Lanes / LanesLayer = "Lanes of the categories of streams: everyday messages, and what migrations and imports bring."] {
            #[doc = "Whether what is below the threshold has a lane of its own, which is served when nothing else waits; else a category has one lane."]
            enabled ("priority-lanes"): bool = false;
            #[doc = "The least priority that is not backfill, a whole number."]
            threshold ("priority-lanes-threshold"): Whole = Whole(0);
            #[doc = "What the backfill lane of the category `customer` is called behind `customer:`."]
            backfill_suffix ("priority-lanes-suffix"): String = overtake_lane::BACKFILL_LANE.to_owned();
        }
    }
}
