//! Servers as people see and change them.

use std::sync::Arc;
use std::time::Duration;

use catalog::snapshot::Listed;
use catalog::{Server, ServerId};
use fields::server::{changed, merge};
use fields::{Field, ServerFields, check};
use store::{AuditKind, Change, Noun};
use upstream::State;

use super::Error;
use crate::Gateway;

/// A server and how it fares.
#[derive(Debug, Clone)]
pub struct ServerInfo {
    /// The operator's settings.
    pub server: Arc<Server>,
    /// `connected`, `connecting`, `down` or `disabled`.
    pub status: &'static str,
    /// Why it is not connected.
    pub error: Option<String>,
    /// Since when it has been down.
    pub down_for: Option<Duration>,
    /// Until the next attempt.
    pub retry_in: Option<Duration>,
    /// Tools it offers, or last offered while it is down.
    pub tools: usize,
    /// Open sessions of apps.
    pub sessions: usize,
    /// The last lines that a local process wrote to its standard error.
    pub stderr: Vec<String>,
    /// The server's own description of itself; empty when it gave none.
    pub server_says: String,
}

impl ServerInfo {
    /// Whether the operator's description stands in for the server's.
    pub fn overridden(&self) -> bool {
        !self.server.description.is_empty()
    }

    /// What models are told it is for.
    pub fn description(&self) -> &str {
        if self.overridden() { &self.server.description } else { &self.server_says }
    }
}

/// A server that answered a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tested {
    /// How many tools it lists.
    pub tools: usize,
    /// What it calls itself.
    pub server: String,
}

impl Gateway {
    /// Every server, in registration order.
    pub fn servers(&self) -> Vec<ServerInfo> {
        self.catalog().servers().iter().map(|listed| self.server_info(listed)).collect()
    }

    /// Adds a server and waits for the first attempt to reach it, at most its `timeout_ms`.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the field; [`Error::Taken`] for a name in use.
    pub async fn create_server(&self, mut fields: ServerFields) -> Result<ServerInfo, Error> {
        let name = std::mem::take(&mut fields.name);
        let Field::Set(name) = name else {
            return Err(Error::invalid("name", "must be given"));
        };
        let mut server = merge(&Server::default(), fields)?;
        server.name = check::name(&name)?;
        let mut turn = self.turn().await?;
        let message = format!("server `{}` was added", server.name);
        turn.push(Change::AddServer(server));
        turn.audit(AuditKind::Server, message);
        let id = ServerId(turn.commit().await?);
        self.settled_server(id, &name).await
    }

    /// Changes a server and waits for the attempt to reach it that this may start. A new name
    /// carries along what belongs to the server, and defaults that named its tools.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Invalid`], [`Error::Taken`].
    pub async fn patch_server(
        &self,
        name: &str,
        mut fields: ServerFields,
    ) -> Result<ServerInfo, Error> {
        let mut turn = self.turn().await?;
        let was = turn.server(name)?.clone();
        let new_name = match std::mem::take(&mut fields.name) {
            Field::Keep => was.name.clone(),
            Field::Set(name) => check::name(&name)?,
            Field::Reset => return Err(Error::invalid("name", "must not be null")),
        };
        let mut server = merge(&was, fields)?;
        // An editor that sends back what it was shown does not mean to freeze those words.
        let says = self.catalog().server_by_id(was.id).and_then(|l| l.known.says.clone());
        if says.is_some_and(|says| says.trim() == server.description) {
            server.description.clear();
        }
        let differs = changed(&was, &server);
        server.name = new_name;
        if server != was {
            turn.push(Change::SetServer(server.clone()));
        }
        if server.name != was.name {
            let message = format!("server `{}` is now called `{}`", was.name, server.name);
            turn.audit(AuditKind::Edit, message);
        }
        if !differs.is_empty() {
            let message = format!("server `{}` was changed: {}", server.name, differs.join(", "));
            turn.audit(AuditKind::Server, message);
        }
        turn.commit().await?;
        self.settled_server(was.id, &server.name).await
    }

    /// Removes a server. Groups that chose it lose it; its usage stays.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn delete_server(&self, name: &str) -> Result<(), Error> {
        let mut turn = self.turn().await?;
        let id = turn.server(name)?.id;
        turn.push(Change::RemoveServer(id));
        turn.audit(AuditKind::Server, format!("server `{name}` was removed"));
        turn.commit().await?;
        Ok(())
    }

    /// Drops every session on a server and opens a fresh link; waits for the attempt.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Refused`] for a disabled server.
    pub async fn reconnect_server(&self, name: &str) -> Result<ServerInfo, Error> {
        let catalog = self.catalog();
        let listed = catalog.server(name).ok_or_else(|| Error::not_found(Noun::Server, name))?;
        if !listed.server.enabled {
            return Err(Error::Refused(format!("server `{name}` is disabled; enable it first")));
        }
        if let Some(upstream) = self.upstreams.get(listed.server.id) {
            upstream.reconnect().await;
        }
        self.server_by_id(listed.server.id, name)
    }

    /// Connects to a server that is not registered, lists its tools and closes.
    ///
    /// # Errors
    /// The outer one for fields that cannot be taken; the inner one says in words why the
    /// server could not be used.
    pub async fn test_server(
        &self,
        mut fields: ServerFields,
    ) -> Result<Result<Tested, String>, Error> {
        let name = std::mem::take(&mut fields.name);
        let mut server = merge(&Server::default(), fields)?;
        server.name = match name.set() {
            Some(name) => check::name(&name)?,
            None => "test".to_owned(),
        };
        Ok(self.try_server(&server).await)
    }

    /// As [`Gateway::test_server`], for one that is registered, enabled or not.
    ///
    /// # Errors
    /// [`Error::NotFound`]; the inner one says in words why the server could not be used.
    pub async fn test_registered(&self, name: &str) -> Result<Result<Tested, String>, Error> {
        let catalog = self.catalog();
        let listed = catalog.server(name).ok_or_else(|| Error::not_found(Noun::Server, name))?;
        Ok(self.try_server(&listed.server).await)
    }

    async fn try_server(&self, server: &Server) -> Result<Tested, String> {
        match self.upstreams.test(server).await {
            Ok(tested) => Ok(Tested { tools: tested.tools, server: tested.name }),
            Err(failure) => Err(failure.to_string()),
        }
    }

    /// Waits outside the turn: a slow server must not hold up other writes.
    async fn settled_server(&self, id: ServerId, name: &str) -> Result<ServerInfo, Error> {
        if let Some(upstream) = self.upstreams.get(id) {
            upstream.settled().await;
        }
        self.server_by_id(id, name)
    }

    fn server_by_id(&self, id: ServerId, name: &str) -> Result<ServerInfo, Error> {
        let catalog = self.catalog();
        let listed =
            catalog.server_by_id(id).ok_or_else(|| Error::not_found(Noun::Server, name))?;
        Ok(self.server_info(listed))
    }

    fn server_info(&self, listed: &Listed) -> ServerInfo {
        let mut info = ServerInfo {
            server: Arc::clone(&listed.server),
            status: if listed.server.enabled { "connecting" } else { "disabled" },
            error: None,
            down_for: None,
            retry_in: None,
            tools: listed.known.tools.len(),
            sessions: 0,
            stderr: Vec::new(),
            server_says: listed.known.says.clone().unwrap_or_default(),
        };
        if let Some(upstream) = self.upstreams.get(listed.server.id) {
            let status = upstream.status();
            info.status = word(status.state);
            info.error = status.failure.map(|failure| failure.to_string());
            info.down_for = status.down_for;
            info.retry_in = status.retry_in;
            info.sessions = status.sessions;
            info.stderr = status.stderr;
        }
        info
    }
}

/// Refused credentials are a way of being down; the error says which.
fn word(state: State) -> &'static str {
    match state {
        State::Connected => "connected",
        State::Connecting => "connecting",
        State::Down | State::Auth | State::Silent => "down",
        State::Disabled => "disabled",
    }
}
