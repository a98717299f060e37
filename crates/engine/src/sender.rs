//! The sender of a message.

use std::sync::Arc;

/// The sender of a message, as conditions of routes read it: `$connectionDeviceId` and `$connectionModuleId`. By default nobody in particular, whose paths are
/// believed: the program that has the engine publishes itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sender {
    user: Option<Arc<str>>,
    is_only_itself: bool,
}

impl Sender {
    /// A user who speaks for itself alone: a path says no more of it than its name does.
    #[must_use]
    pub fn user(name: Arc<str>) -> Self {
        Self { user: Some(name), is_only_itself: true }
    }

    /// Somebody of this name whose word is taken for it, as an administrator's or a source's, and whose paths are believed.
    #[must_use]
    pub fn believed(name: Option<Arc<str>>) -> Self {
        Self { user: name, is_only_itself: false }
    }

    /// The device: what the user's name has before the first `/`, or all of it.
    #[must_use]
    pub fn device(&self) -> Option<&str> {
        let user = self.user.as_deref()?;
        Some(user.split_once('/').map_or(user, |(device, _)| device))
    }

    /// The module: what the user's name has after the first `/`; else that of a path, if it is the user's own name or paths are believed.
    #[must_use]
    pub fn module<'a>(&'a self, of_path: Option<&'a str>) -> Option<&'a str> {
        let own = self.user.as_deref().and_then(|user| user.split_once('/')).map(|(_, module)| module);
        let is_it = |path: &&str| !self.is_only_itself || self.user.as_deref() == Some(*path);
        own.or_else(|| of_path.filter(is_it))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sender: &Sender, of_path: Option<&str>, device: Option<&str>, module: Option<&str>) {
        assert_eq!((sender.device(), sender.module(of_path)), (device, module), "{sender:?} {of_path:?}");
    }

    #[test]
    fn a_path_says_which_module_only_of_whom_it_is_believed() {
        check(&Sender::default(), Some("cam"), None, Some("cam"));
        check(&Sender::user("cam".into()), Some("cam"), Some("cam"), Some("cam"));
        check(&Sender::user("cam".into()), Some("door"), Some("cam"), None);
        check(&Sender::user("cam".into()), None, Some("cam"), None);
        check(&Sender::user("edge/cam/1".into()), Some("door"), Some("edge"), Some("cam/1"));
        check(&Sender::believed(Some("ann".into())), Some("door"), Some("ann"), Some("door"));
        check(&Sender::believed(Some("edge/cam".into())), Some("door"), Some("edge"), Some("cam"));
    }
}
