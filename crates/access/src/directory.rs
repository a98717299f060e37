//! Everybody there is, with rights and tokens: read from metadata, and changed by writing metadata.
//!
//! ```text
//!   access/begun                          somebody was made here once
//!   access/user/NAME                      {"password":{…},"tags":[…],"limits":{…}}
//!   access/permission/NAME/VHOST          {"configure":"…","write":"…","read":"…"}
//!   access/token/ID                       {"digest":"…","label":"…",…}
//! ```
//! Names are percent-encoded, so that they may hold slashes. Invariant: permissions and tokens are of users who are there.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use overtake_lane::{MetadataEntry, NAME_LEN_MAX, check_name};
use overtake_routes::nearest::nearest;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use crate::password::PasswordHash;
use crate::right::{Permission, TAGS, Tag, Tags};
use crate::token::{Digested, Token};

/// What every key of ours begins with.
const ROOM: &str = "access/";
const BEGUN: &str = "access/begun";
/// Most tokens of one user.
pub const TOKENS_MAX: usize = 1_000;
/// Most bytes of the label of a token.
pub const LABEL_LEN_MAX: usize = 200;

/// How much somebody may have at once. `None`: no limit of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct UserLimits {
    /// Connections; 0: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<u32>,
    /// Channels of all connections; 0: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_channels: Option<u32>,
}

/// What somebody is, but for rights.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The password as it is kept; `None`: nobody logs in with one, only by a certificate or a token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<PasswordHash>,
    /// Tags.
    #[serde(default)]
    pub tags: Tags,
    /// Limits.
    #[serde(default)]
    pub limits: UserLimits,
}

/// Somebody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// What somebody is.
    pub account: Account,
    /// The rights in each virtual host that may be entered, by its name.
    pub permissions: BTreeMap<Arc<str>, Permission>,
    /// The account is there. Without it nobody is: a broker gave permissions while another deleted the user.
    is_made: bool,
}

/// A token as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct KeptToken {
    digest: Digested,
    #[serde(flatten)]
    token: Token,
}

impl fmt::Debug for Digested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digested")
    }
}

/// Everybody there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    begun: bool,
    users: BTreeMap<Arc<str>, Arc<User>>,
    tokens: BTreeMap<Arc<str>, Arc<KeptToken>>,
    by_digest: BTreeMap<Digested, Arc<str>>,
}

/// Something to change, all of it or nothing.
#[derive(Clone, Debug)]
pub enum Change {
    /// Somebody is there, and is so. Rights stay.
    PutUser {
        /// Who.
        name: Arc<str>,
        /// What.
        account: Account,
    },
    /// Somebody is not there, and no rights or tokens.
    DeleteUser {
        /// Who.
        name: Arc<str>,
    },
    /// Somebody has these rights in a virtual host.
    SetPermission {
        /// Who.
        user: Arc<str>,
        /// Where.
        vhost: Arc<str>,
        /// Which.
        permission: Permission,
    },
    /// Somebody has no rights in a virtual host.
    ClearPermission {
        /// Who.
        user: Arc<str>,
        /// Where.
        vhost: Arc<str>,
    },
    /// Nobody has rights in a virtual host: it goes.
    ForgetVhost {
        /// Which.
        vhost: Arc<str>,
    },
    /// There is a token.
    #[doc(hidden)]
    PutToken {
        /// Its number.
        id: Arc<str>,
        /// By what it is found.
        digest: TokenDigest,
        /// What it is.
        token: Token,
    },
    /// There is no such token.
    DeleteToken {
        /// Its number.
        id: Arc<str>,
    },
}

/// By what a token is found.
#[derive(Clone, Copy, Debug)]
pub struct TokenDigest(pub(crate) Digested);

/// Why something cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unchangeable {
    /// There is no such user.
    NoSuchUser(Arc<str>),
    /// The user has no rights in that virtual host.
    NoSuchPermission,
    /// There is no such token.
    NoSuchToken,
    /// A name that cannot be.
    BadName,
    /// The user has too many tokens.
    TooManyTokens,
    /// Nobody would be left who can change anything.
    LastAdministrator,
    /// No tag has this name.
    UnknownTag(Arc<str>),
    /// The user would become an administrator and has no password, and the request does not say that this is meant.
    AdministratorWithoutPassword(Arc<str>),
}

impl fmt::Display for Unchangeable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchUser(name) => write!(f, "there is no user `{name}`"),
            Self::NoSuchPermission => f.write_str("the user has no rights in this virtual host"),
            Self::NoSuchToken => f.write_str("there is no such token"),
            Self::BadName => {
                write!(f, "a name is 1 to {NAME_LEN_MAX} bytes without control characters")
            }
            Self::LastAdministrator => f.write_str("nobody would be left with the tag `administrator`"),
            Self::UnknownTag(tag) => {
                write!(f, "there is no tag `{tag}`")?;
                let near = nearest(tag, TAGS.map(Tag::as_str));
                near.map_or(Ok(()), |near| write!(f, "; did you mean `{near}`?"))
            }
            Self::AdministratorWithoutPassword(name) => {
                write!(f, "`{name}` would be an administrator without a password")
            }
            Self::TooManyTokens => write!(f, "a user has at most {TOKENS_MAX} tokens"),
        }
    }
}

impl std::error::Error for Unchangeable {}

/// Metadata of ours that nobody can have written so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(String);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the metadata `{}` cannot be read: was it written by a newer version?", self.0)
    }
}

impl std::error::Error for Unreadable {}

impl Directory {
    // ---- reading and writing metadata ----

    /// A value of metadata is so, or is gone. What is not ours is passed over.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn fold(&mut self, key: &str, value: Option<&[u8]>) -> Result<(), Unreadable> {
        let Some(ours) = key.strip_prefix(ROOM) else { return Ok(()) };
        let unreadable = || Unreadable(key.to_owned());
        let mut parts = ours.split('/').map(|part| percent_decode_str(part).decode_utf8().ok());
        let mut part = || parts.next().flatten();
        match (part().as_deref(), part(), part(), value) {
            (Some("begun"), None, None, _) => self.begun = value.is_some(),
            (Some("user"), Some(name), None, Some(value)) => {
                let account = read(value).ok_or_else(unreadable)?;
                let user = Arc::make_mut(self.users.entry(name.into()).or_default());
                (user.account, user.is_made) = (account, true);
            }
            (Some("user"), Some(name), None, None) => drop(self.users.remove(&*name)),
            (Some("permission"), Some(name), Some(vhost), value) => {
                // Its user comes after it when all is read by key.
                let user = Arc::make_mut(self.users.entry(name.into()).or_default());
                match value {
                    Some(value) => {
                        user.permissions.insert(vhost.into(), read(value).ok_or_else(unreadable)?);
                    }
                    None => drop(user.permissions.remove(&*vhost)),
                }
            }
            (Some("token"), Some(id), None, value) => {
                if let Some(old) = self.tokens.remove(&*id) {
                    self.by_digest.remove(&old.digest);
                }
                if let Some(value) = value {
                    let kept: KeptToken = read(value).ok_or_else(unreadable)?;
                    let id: Arc<str> = id.into();
                    self.by_digest.insert(kept.digest, Arc::clone(&id));
                    self.tokens.insert(id, Arc::new(kept));
                }
            }
            _ => return Err(unreadable()),
        }
        Ok(())
    }

    /// The metadata that makes changes, in order.
    ///
    /// # Errors
    /// [`Unchangeable`].
    pub fn entries(&self, changes: &[Change]) -> Result<Vec<MetadataEntry>, Unchangeable> {
        let (mut then, mut entries) = (self.clone(), Vec::new());
        if !self.begun {
            entries.push(MetadataEntry::set(BEGUN, b"{}"));
        }
        for change in changes {
            let more = then.entries_of(change)?;
            for MetadataEntry { key, value } in &more {
                then.fold(key, value.as_deref()).expect("what is written can be read");
            }
            entries.extend(more);
        }
        if self.has_administrator() && !then.has_administrator() {
            return Err(Unchangeable::LastAdministrator);
        }
        Ok(entries)
    }

    fn entries_of(&self, change: &Change) -> Result<Vec<MetadataEntry>, Unchangeable> {
        let one = |key: String, value: Vec<u8>| Ok(vec![MetadataEntry::set(&key, &value)]);
        match change {
            Change::PutUser { name, account } => {
                check_name(name).map_err(|_| Unchangeable::BadName)?;
                // Whoever comes anew has nothing of before.
                let left = if self.user(name).is_none() { self.entries_without(name) } else { Vec::new() };
                let put = MetadataEntry::set(&key(&["user", name]), &write(account));
                Ok(left.into_iter().chain([put]).collect())
            }
            Change::DeleteUser { name } => {
                self.must(name)?;
                let user = MetadataEntry::remove(&key(&["user", name]));
                Ok(self.entries_without(name).into_iter().chain([user]).collect())
            }
            Change::SetPermission { user, vhost, permission } => {
                self.must(user)?;
                check_name(vhost).map_err(|_| Unchangeable::BadName)?;
                one(key(&["permission", user, vhost]), write(permission))
            }
            Change::ClearPermission { user, vhost } => {
                let there = self.must(user)?.permissions.contains_key(vhost);
                there.then_some(()).ok_or(Unchangeable::NoSuchPermission)?;
                Ok(vec![MetadataEntry::remove(&key(&["permission", user, vhost]))])
            }
            Change::ForgetVhost { vhost } => {
                let has = |user: &User| user.permissions.contains_key(vhost);
                let users = self.users.iter().filter(|(_, user)| has(user)).map(|(name, _)| name);
                Ok(users.map(|name| MetadataEntry::remove(&key(&["permission", name, vhost]))).collect())
            }
            Change::PutToken { id, digest, token } => {
                self.must(&token.user)?;
                let fits = token.label.len() <= LABEL_LEN_MAX && !token.label.chars().any(char::is_control);
                fits.then_some(()).ok_or(Unchangeable::BadName)?;
                if self.tokens_of(&token.user).count() >= TOKENS_MAX {
                    return Err(Unchangeable::TooManyTokens);
                }
                one(key(&["token", id]), write(&KeptToken { digest: digest.0, token: token.clone() }))
            }
            Change::DeleteToken { id } => {
                self.tokens.contains_key(id).then_some(()).ok_or(Unchangeable::NoSuchToken)?;
                Ok(vec![MetadataEntry::remove(&key(&["token", id]))])
            }
        }
    }

    /// Takes the tokens and the permissions of a name away.
    fn entries_without(&self, name: &str) -> Vec<MetadataEntry> {
        let tokens = self.tokens_of(name).map(|(id, _)| key(&["token", id]));
        let vhosts = self.users.get(name).into_iter().flat_map(|user| user.permissions.keys());
        let permissions = vhosts.map(|vhost| key(&["permission", name, vhost]));
        tokens.chain(permissions).map(|key| MetadataEntry::remove(&key)).collect()
    }

    fn has_administrator(&self) -> bool {
        self.users().any(|(_, user)| user.account.tags.cover(Tag::Administrator))
    }

    fn must(&self, name: &Arc<str>) -> Result<&User, Unchangeable> {
        self.user(name).ok_or_else(|| Unchangeable::NoSuchUser(Arc::clone(name)))
    }

    // ---- seeing ----

    /// Whether somebody was ever made here: until then there is nobody to begin with.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Somebody.
    #[must_use]
    pub fn user(&self, name: &str) -> Option<&User> {
        self.users.get(name).map(|user| &**user).filter(|user| user.is_made)
    }

    /// Everybody, by name.
    pub fn users(&self) -> impl Iterator<Item = (&Arc<str>, &User)> {
        self.users.iter().filter(|(_, user)| user.is_made).map(|(name, user)| (name, &**user))
    }

    /// Every token, by its number.
    pub fn tokens(&self) -> impl Iterator<Item = (&Arc<str>, &Token)> {
        self.tokens.iter().map(|(id, kept)| (id, &kept.token))
    }

    fn tokens_of<'a>(&'a self, user: &'a str) -> impl Iterator<Item = (&'a Arc<str>, &'a Token)> {
        self.tokens().filter(move |(_, token)| &*token.user == user)
    }

    /// A token by its number.
    #[must_use]
    pub fn token(&self, id: &str) -> Option<&Token> {
        self.tokens.get(id).map(|kept| &kept.token)
    }

    /// A token by what a client shows: its number, and what it is.
    pub(crate) fn shown(&self, text: &str) -> Option<(&Arc<str>, &Token)> {
        let id = self.by_digest.get(&Digested::of(text))?;
        Some((id, &self.tokens.get(id)?.token))
    }
}

fn key(parts: &[&str]) -> String {
    let encoded: Vec<String> =
        parts.iter().map(|part| utf8_percent_encode(part, NON_ALPHANUMERIC).to_string()).collect();
    format!("{ROOM}{}", encoded.join("/"))
}

fn read<T: serde::de::DeserializeOwned>(value: &[u8]) -> Option<T> {
    serde_json::from_slice(value).ok()
}

fn write(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain data is JSON")
}

#[cfg(test)]
mod tests {
    use overtake_lane::Time;

    use super::*;
    use crate::token::Scope;

    fn account(tags: &str) -> Account {
        Account { tags: tags.split_whitespace().collect(), ..Account::default() }
    }

    fn put(name: &str, tags: &str) -> Change {
        Change::PutUser { name: name.into(), account: account(tags) }
    }

    fn set(user: &str, vhost: &str) -> Change {
        let permission = Permission::new("c", "w", "r").expect("patterns");
        Change::SetPermission { user: user.into(), vhost: vhost.into(), permission }
    }

    fn token(id: &str, user: &str) -> Change {
        let (scope, created) = (Scope::default(), Time(1));
        let token = Token { label: "ci".into(), user: user.into(), scope, created, expires: None };
        Change::PutToken { id: id.into(), digest: TokenDigest(Digested::of(id)), token }
    }

    /// Users with their tags, the virtual hosts they may enter, and their tokens.
    fn show(directory: &Directory) -> String {
        let user = |(name, user): (&Arc<str>, &User)| {
            let tags: Vec<&str> = user.account.tags.iter().collect();
            let vhosts: Vec<&str> = user.permissions.keys().map(|vhost| &**vhost).collect();
            let tokens: Vec<&str> = directory.tokens_of(name).map(|(id, _)| &**id).collect();
            format!("{name}[{}]({})<{}>", tags.join(","), vhosts.join(","), tokens.join(","))
        };
        directory.users().map(user).collect::<Vec<_>>().join(" ")
    }

    fn apply(directory: &mut Directory, changes: &[Change]) -> Result<usize, Unchangeable> {
        let entries = directory.entries(changes)?;
        for MetadataEntry { key, value } in &entries {
            directory.fold(key, value.as_deref()).expect("what is written can be read");
        }
        Ok(entries.len())
    }

    #[test]
    fn what_was_written_is_read_again_in_the_order_of_the_keys() {
        let (mut directory, mut metadata) = (Directory::default(), BTreeMap::new());
        let changes = [
            put("a/b", "administrator x"),
            put("guest", ""),
            set("a/b", "/"),
            set("a/b", "ü"),
            token("7", "guest"),
        ];
        for MetadataEntry { key, value } in directory.entries(&changes).expect("they can be made") {
            directory.fold(&key, value.as_deref()).expect("readable");
            metadata.insert(key, value.expect("a value"));
        }
        let expect = "a/b[administrator,x](/,ü)<> guest[]()<7>";
        assert_eq!(show(&directory), expect);

        let mut again = Directory::default();
        assert!(!again.has_begun());
        for (key, value) in &metadata {
            again.fold(key, Some(value)).expect("readable");
        }
        assert_eq!(show(&again), expect);
        assert!(again.has_begun());
        assert_eq!(again.shown("7").map(|(id, _)| &**id), Some("7"));
        assert!(again.shown("8").is_none());
    }

    #[test]
    fn who_goes_takes_rights_and_tokens_along() {
        let mut directory = Directory::default();
        apply(&mut directory, &[put("a", ""), put("b", ""), set("a", "/"), set("b", "/"), token("1", "a")])
            .expect("made");
        assert_eq!(apply(&mut directory, &[Change::DeleteUser { name: "a".into() }]), Ok(3));
        assert_eq!(show(&directory), "b[](/)<>");
        assert!(directory.shown("1").is_none());
        apply(&mut directory, &[put("a", "")]).expect("made");
        assert_eq!(show(&directory), "a[]()<> b[](/)<>", "who comes anew has no rights of before");
    }

    #[test]
    fn who_is_deleted_while_another_broker_gives_rights_is_gone() {
        let mut directory = Directory::default();
        apply(&mut directory, &[put("a", ""), put("b", "administrator")]).expect("made");
        let elsewhere = directory.entries(&[set("a", "/"), token("1", "a")]).expect("they can be made");
        apply(&mut directory, &[Change::DeleteUser { name: "a".into() }]).expect("deleted");
        for MetadataEntry { key, value } in &elsewhere {
            directory.fold(key, value.as_deref()).expect("readable");
        }
        assert!(directory.user("a").is_none());
        assert_eq!(show(&directory), "b[administrator]()<>");
        apply(&mut directory, &[put("a", "")]).expect("made");
        assert_eq!(show(&directory), "a[]()<> b[administrator]()<>", "nothing of before");
    }

    #[test]
    fn a_virtual_host_that_goes_takes_the_rights_in_it_along() {
        let mut directory = Directory::default();
        apply(&mut directory, &[put("a", ""), set("a", "x"), set("a", "y")]).expect("made");
        apply(&mut directory, &[Change::ForgetVhost { vhost: "x".into() }]).expect("made");
        assert_eq!(show(&directory), "a[](y)<>");
    }

    #[test]
    fn changes_come_all_or_none() {
        let mut directory = Directory::default();
        let failed = apply(&mut directory, &[put("a", ""), set("b", "/")]);
        assert_eq!(failed, Err(Unchangeable::NoSuchUser("b".into())));
        assert_eq!(show(&directory), "");
        assert_eq!(apply(&mut directory, &[put("", "")]), Err(Unchangeable::BadName));
        assert_eq!(
            apply(&mut directory, &[Change::DeleteToken { id: "1".into() }]),
            Err(Unchangeable::NoSuchToken)
        );
        apply(&mut directory, &[put("a", "")]).expect("made");
        let clear = Change::ClearPermission { user: "a".into(), vhost: "/".into() };
        assert_eq!(apply(&mut directory, &[clear]), Err(Unchangeable::NoSuchPermission));
    }

    #[test]
    fn what_nobody_wrote_is_named() {
        let mut directory = Directory::default();
        for key in
            ["access/user/a", "access/permission/a/b", "access/token/1", "access/what", "access/user/%FF"]
        {
            let error = directory.clone().fold(key, Some(b"[]")).expect_err("unreadable").to_string();
            assert!(error.starts_with(&format!("the metadata `{key}` cannot be read")), "{error}");
        }
        directory.fold("other/user/a", Some(b"[]")).expect("passed over");
    }
}
