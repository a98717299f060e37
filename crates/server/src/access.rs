//! The gate at start: the first administrator, the audit file, and that beyond this machine nobody is served by guest alone.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use overtake_access::{Account, Change, DEFAULT_VHOST, Desks, Gate, NoGate, NotChanged, Permission, Tag};
use overtake_engine::{Clock, Engine, WallClock};
use overtake_management::definitions;
use rustix::fs::{Access, access};

use crate::ServeError;
use crate::config::Config;
use crate::serve::Addresses;

/// Opens the gate over an engine, and makes the first administrator if the configuration names one. Administrative actions are added to `audit`.
pub(crate) async fn open(
    config: &Config,
    engine: Arc<dyn Engine>,
    audit: Option<Box<dyn Write + Send>>,
) -> Result<Gate, ServeError> {
    let opened = Gate::open(engine, || WallClock.now()).await;
    let gate = opened.map_err(|why| match why {
        NoGate::Engine(failure) => ServeError::Stopped { why: failure.to_string() },
        NoGate::Unreadable(unreadable) => ServeError::Users { why: unreadable.to_string() },
    })?;
    gate.audit().write_to(audit);
    make_administrator(config, &gate).await?;
    warn_of_default_user(&gate);
    Ok(gate)
}

/// Says that anybody on this machine is an administrator, as long as that is so.
fn warn_of_default_user(gate: &Gate) {
    if gate.has_default_user() {
        tracing::warn!(
            "the user `guest` has the password `guest`: everybody on this machine can log in as guest; set another password with \
             `overtake user put guest --new-password`, or make an administrator of your own and delete guest with `overtake user \
             delete guest`"
        );
    }
}

/// Where administrative actions are added, opened anew: it may have been moved away.
pub(crate) fn audit_file(config: &Config) -> Result<Option<Box<dyn Write + Send>>, ServeError> {
    let path = &config.access.audit_file.value;
    if path.as_os_str().is_empty() {
        return Ok(None);
    }
    let file = for_me_alone(path).map_err(|error| ServeError::AuditFile { path: path.clone(), error })?;
    Ok(Some(Box::new(file)))
}

/// Whether the file of administrative actions could be opened, which is not made here.
pub(crate) fn check_audit_file(config: &Config) -> Result<(), ServeError> {
    let path = &config.access.audit_file.value;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let opened = match OpenOptions::new().append(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            access(dir, Access::WRITE_OK | Access::EXEC_OK).map_err(io::Error::from)
        }
        opened => opened.map(drop),
    };
    match opened {
        Err(error) if !path.as_os_str().is_empty() => {
            Err(ServeError::AuditFile { path: path.clone(), error })
        }
        _ => Ok(()),
    }
}

fn for_me_alone(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

async fn make_administrator(config: &Config, gate: &Gate) -> Result<(), ServeError> {
    let (user, path) = (&config.access.admin_user.value, &config.access.admin_password_file.value);
    if user.is_empty() || gate.roll().now().user(user).is_some() {
        return Ok(());
    }
    let unusable = |why: String| ServeError::AdminPassword { path: path.clone(), why };
    let text = std::fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
    let password = gate.hashed(text.trim_end_matches(['\r', '\n']).to_owned()).await;
    let password = password.map_err(|bad| unusable(bad.to_string()))?;
    let tags = [Tag::Administrator.as_str()].into_iter().collect();
    let name: Arc<str> = user.as_str().into();
    let account = Account { password: Some(password), tags, ..Account::default() };
    let rights = Change::SetPermission {
        user: Arc::clone(&name),
        vhost: DEFAULT_VHOST.into(),
        permission: Permission::everything(),
    };
    let made = gate.change(None, vec![Change::PutUser { name, account }, rights]).await;
    made.map_err(|not| match not {
        NotChanged::Failed(failure) => ServeError::Stopped { why: failure.to_string() },
        NotChanged::Unchangeable(why) => unusable(why.to_string()),
    })
}

/// Imports the definitions that the configuration names, if it does.
pub(crate) async fn load_definitions(config: &Config, desks: &Desks) -> Result<(), ServeError> {
    let path = &config.access.load_definitions.value;
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    let cannot = |why: String| ServeError::Definitions { path: path.clone(), why };
    let file = std::fs::read(path).map_err(|error| cannot(error.to_string()))?;
    let changes = definitions::load(desks, &file).await.map_err(|not| cannot(not.to_string()))?;
    for change in &changes {
        tracing::info!("definitions: {change}");
    }
    Ok(())
}

/// Beyond this machine nobody is served while guest is the only administrator: whoever could reach it could do nothing, or worse,
/// through a proxy, everything.
pub(crate) fn check_reach(addresses: &Addresses, gate: &Gate) -> Result<(), ServeError> {
    let reaches_out = |address: &SocketAddr| !address.ip().to_canonical().is_loopback();
    let far = addresses.served().map(|(_, address)| address).find(reaches_out);
    match far.filter(|_| !gate.has_administrator_from_elsewhere()) {
        Some(address) => Err(ServeError::NoAdministrator { address }),
        None => Ok(()),
    }
}
