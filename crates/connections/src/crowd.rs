//! How many connections and channels each user has, and how many connections each virtual host, for their limits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use overtake_access::Identity;

/// The number of open connections and channels by user, and of connections by virtual host. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct Crowd(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    users: HashMap<Arc<str>, User>,
    vhosts: HashMap<Arc<str>, u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct User {
    connections: u32,
    channels: u32,
}

/// The place of one connection. Dropped, it is given back with those of its channels.
#[derive(Debug)]
pub(crate) struct Seat {
    crowd: Crowd,
    who: Identity,
    vhost: Arc<str>,
    channels: u32,
}

impl Crowd {
    /// A place for a connection of this user to this virtual host, which takes at most so many.
    ///
    /// # Errors
    /// Which limit is reached, in RabbitMQ's words.
    pub(crate) fn enter(&self, who: &Identity, vhost: &str, most: Option<u64>) -> Result<Seat, String> {
        let mut counts = self.counts();
        let user = who.user();
        let (of_user, of_vhost) = (counts.user(user).connections, counts.vhost(vhost));
        if let Some(most) = most.filter(|most| u64::from(of_vhost) >= *most) {
            return Err(format!(
                "access to vhost '{vhost}' refused for user '{user}': connection limit ({most}) is reached"
            ));
        }
        if let Some(most) = who.limits().max_connections.filter(|most| of_user >= *most) {
            return Err(format!(
                "connection refused for user '{user}': user connection limit ({most}) is reached"
            ));
        }
        counts.users.entry(Arc::clone(user)).or_default().connections += 1;
        let vhost: Arc<str> = vhost.into();
        *counts.vhosts.entry(Arc::clone(&vhost)).or_default() += 1;
        Ok(Seat { crowd: self.clone(), who: who.clone(), vhost, channels: 0 })
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn user(&self, user: &str) -> User {
        self.users.get(user).copied().unwrap_or_default()
    }

    fn vhost(&self, vhost: &str) -> u32 {
        self.vhosts.get(vhost).copied().unwrap_or_default()
    }
}

impl Seat {
    /// Who sits here.
    pub(crate) fn who(&self) -> &Identity {
        &self.who
    }

    /// Where.
    pub(crate) fn vhost(&self) -> &str {
        &self.vhost
    }

    /// The connection has so many channels now.
    ///
    /// # Errors
    /// The user has more of them than allowed, in RabbitMQ's words.
    pub(crate) fn channels(&mut self, channels: u32) -> Result<(), String> {
        if channels == self.channels {
            return Ok(());
        }
        let is_more = channels > self.channels;
        let mut counts = self.crowd.counts();
        let user = counts.users.entry(Arc::clone(self.who.user())).or_default();
        user.channels = user.channels - self.channels + channels;
        self.channels = channels;
        let all = user.channels;
        drop(counts);
        match self.who.limits().max_channels.filter(|most| is_more && all > *most) {
            Some(most) => Err(format!(
                "number of channels opened for user '{}' has reached the maximum allowed user limit of ({most})",
                self.who.user()
            )),
            None => Ok(()),
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut counts = self.crowd.counts();
        if let Some(user) = counts.users.get_mut(self.who.user()) {
            user.connections -= 1;
            user.channels -= self.channels;
            if user.connections == 0 {
                counts.users.remove(self.who.user());
            }
        }
        if let Some(connections) = counts.vhosts.get_mut(&self.vhost) {
            *connections -= 1;
            if *connections == 0 {
                counts.vhosts.remove(&self.vhost);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_virtual_host_takes_so_many_connections_and_one_that_goes_makes_room() {
        let (crowd, who) = (Crowd::default(), Identity::almighty("ann"));
        let first = crowd.enter(&who, "v", Some(2)).expect("room");
        let _second = crowd.enter(&who, "v", Some(2)).expect("room");
        let refused = "access to vhost 'v' refused for user 'ann': connection limit (2) is reached";
        assert_eq!(crowd.enter(&who, "v", Some(2)).err().as_deref(), Some(refused));
        crowd.enter(&who, "w", Some(1)).expect("another one has room");
        crowd.enter(&who, "v", None).expect("no limit");
        drop(first);
        crowd.enter(&who, "v", Some(2)).expect("room again");
    }

    #[test]
    fn nobody_is_remembered_who_is_gone() {
        let (crowd, who) = (Crowd::default(), Identity::almighty("ann"));
        let mut seat = crowd.enter(&who, "v", None).expect("room");
        seat.channels(3).expect("no limit");
        seat.channels(1).expect("fewer");
        assert_eq!(crowd.counts().user("ann").channels, 1);
        drop(seat);
        assert!(crowd.counts().users.is_empty() && crowd.counts().vhosts.is_empty());
    }
}
