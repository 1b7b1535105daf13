//! One server's settings out of the fields that someone sent (P21). Pure.

use std::time::Duration;

use catalog::{Pinned, Secret, Server, Transport};

use crate::{Field, Invalid, check};

/// What may be said of a server (P21). An entry with both `url` and `command` runs the command.
#[derive(Debug, Clone, Default)]
pub struct ServerFields {
    /// Unique, 1–64 characters.
    pub name: Field<String>,
    /// Where it answers.
    pub url: Field<String>,
    /// Sent with every request.
    pub headers: Field<Vec<(String, Secret)>>,
    /// PEM file trusted for this server.
    pub ca_file: Field<String>,
    /// What to run.
    pub command: Field<String>,
    /// Its arguments.
    pub args: Field<Vec<String>>,
    /// Its environment.
    pub env: Field<Vec<(String, Secret)>>,
    /// Its working directory.
    pub cwd: Field<String>,
    /// What models are told it is for; blank is the server's own words.
    pub description: Field<String>,
    /// Default true.
    pub enabled: Field<bool>,
    /// One session per group; default false.
    pub shared: Field<bool>,
    /// Milliseconds, 100 to 10 minutes; default 30,000.
    pub timeout_ms: Field<u64>,
    /// Milliseconds, 100 to a day; default 600,000.
    pub call_timeout_ms: Field<u64>,
    /// `auto`, `legacy` or `modern`.
    pub protocol: Field<String>,
}

/// Longest `timeout_ms`.
const TIMEOUT_MAX: Duration = Duration::from_secs(600);

/// Longest `call_timeout_ms`.
const CALL_TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Longest description, in bytes.
const DESCRIPTION_MAX: usize = 16 << 10;

/// `current` with the fields put over it. The name is left for the caller, who knows
/// whether there must be one.
pub fn merge(current: &Server, mut fields: ServerFields) -> Result<Server, Invalid> {
    let transport = Parts::of(&current.transport).put(&mut fields)?;
    let timeout = fields.timeout_ms.try_map(|ms| check::time("timeout_ms", ms, TIMEOUT_MAX))?;
    let call_timeout = fields
        .call_timeout_ms
        .try_map(|ms| check::time("call_timeout_ms", ms, CALL_TIMEOUT_MAX))?;
    let protocol = fields.protocol.try_map(|word| {
        Pinned::parse(&word).ok_or_else(|| {
            let message = format!("must be `auto`, `legacy` or `modern`, not `{word}`");
            Invalid::new("protocol", message)
        })
    })?;
    let description = fields.description.over(current.description.clone(), String::new());
    check::short("description", &description, DESCRIPTION_MAX)?;
    Ok(Server {
        id: current.id,
        name: current.name.clone(),
        transport,
        description: description.trim().to_owned(),
        enabled: fields.enabled.over(current.enabled, true),
        shared: fields.shared.over(current.shared, false),
        timeout: timeout.over(current.timeout, Server::TIMEOUT),
        call_timeout: call_timeout.over(current.call_timeout, Server::CALL_TIMEOUT),
        protocol: protocol.over(current.protocol, Pinned::Auto),
    })
}

/// The names of the fields in which two settings of one server differ.
pub fn changed(was: &Server, is: &Server) -> Vec<&'static str> {
    let (old, new) = (Parts::of(&was.transport), Parts::of(&is.transport));
    let differs = [
        ("url", old.url != new.url),
        ("headers", old.headers != new.headers),
        ("ca_file", old.ca_file != new.ca_file),
        ("command", old.command != new.command),
        ("args", old.args != new.args),
        ("env", old.env != new.env),
        ("cwd", old.cwd != new.cwd),
        ("description", was.description != is.description),
        ("enabled", was.enabled != is.enabled),
        ("shared", was.shared != is.shared),
        ("timeout_ms", was.timeout != is.timeout),
        ("call_timeout_ms", was.call_timeout != is.call_timeout),
        ("protocol", was.protocol != is.protocol),
    ];
    differs.into_iter().filter_map(|(name, differs)| differs.then_some(name)).collect()
}

/// Both kinds of transport side by side, as the fields on the wire are.
#[derive(Default)]
struct Parts {
    url: Option<String>,
    headers: Vec<(String, Secret)>,
    ca_file: Option<String>,
    command: Option<String>,
    args: Vec<String>,
    env: Vec<(String, Secret)>,
    cwd: Option<String>,
}

impl Parts {
    fn of(transport: &Transport) -> Self {
        match transport.clone() {
            Transport::Http { url, headers, ca_file } => {
                let url = (!url.is_empty()).then_some(url);
                Self { url, headers, ca_file, ..Self::default() }
            }
            Transport::Stdio { command, args, env, cwd } => {
                Self { command: Some(command), args, env, cwd, ..Self::default() }
            }
        }
    }

    /// An entry with both runs the command; a change that gives one drops the other.
    fn put(self, fields: &mut ServerFields) -> Result<Transport, Invalid> {
        let gives_url = matches!(fields.url, Field::Set(_));
        let gives_command = matches!(fields.command, Field::Set(_));
        let url = std::mem::take(&mut fields.url).try_map(|url| check::url(&url).map(Some))?;
        let command = std::mem::take(&mut fields.command)
            .try_map(|command| check::filled("command", command).map(Some))?;
        let url = url.over(self.url.clone(), None);
        let command = command.over(self.command.clone(), None);
        match (command, url) {
            (Some(command), _) if gives_command || !gives_url => {
                if !gives_url {
                    fields.refuse_for_process()?;
                }
                self.stdio(command, fields)
            }
            (_, Some(url)) => {
                fields.refuse_for_address()?;
                self.http(url, fields)
            }
            (_, None) => {
                let message =
                    "or `command` must be given: where the server answers, or what to run";
                Err(Invalid::new("url", message))
            }
        }
    }

    fn stdio(self, command: String, fields: &mut ServerFields) -> Result<Transport, Invalid> {
        let args = std::mem::take(&mut fields.args).try_map(|args| {
            args.into_iter().map(|arg| check::without_nul("args", arg)).collect::<Result<_, _>>()
        })?;
        let env = std::mem::take(&mut fields.env).try_map(check::env)?;
        let cwd =
            std::mem::take(&mut fields.cwd).try_map(|cwd| check::filled("cwd", cwd).map(Some))?;
        Ok(Transport::Stdio {
            command,
            args: args.over(self.args, Vec::new()),
            env: env.over(self.env, Vec::new()),
            cwd: cwd.over(self.cwd, None),
        })
    }

    fn http(self, url: String, fields: &mut ServerFields) -> Result<Transport, Invalid> {
        let headers = std::mem::take(&mut fields.headers).try_map(check::headers)?;
        let ca_file = std::mem::take(&mut fields.ca_file)
            .try_map(|path| check::filled("ca_file", path).map(Some))?;
        Ok(Transport::Http {
            url,
            headers: headers.over(self.headers, Vec::new()),
            ca_file: ca_file.over(self.ca_file, None),
        })
    }
}

impl ServerFields {
    /// What only an address can use is not dropped in silence.
    fn refuse_for_process(&self) -> Result<(), Invalid> {
        let given = [
            ("headers", matches!(&self.headers, Field::Set(list) if !list.is_empty())),
            ("ca_file", matches!(self.ca_file, Field::Set(_))),
        ];
        refuse(&given, "is for servers with a `url`; this one runs a `command`")
    }

    /// What only a process can use is not dropped in silence.
    fn refuse_for_address(&self) -> Result<(), Invalid> {
        let given = [
            ("args", matches!(&self.args, Field::Set(list) if !list.is_empty())),
            ("env", matches!(&self.env, Field::Set(list) if !list.is_empty())),
            ("cwd", matches!(self.cwd, Field::Set(_))),
        ];
        refuse(&given, "is for servers that run a `command`; this one has a `url`")
    }
}

fn refuse(given: &[(&str, bool)], message: &str) -> Result<(), Invalid> {
    match given.iter().find(|(_, given)| *given) {
        Some((field, _)) => Err(Invalid::new(field, message)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use catalog::{Secret, Server, Transport};

    use super::{ServerFields, changed, merge};
    use crate::Field::{Reset, Set};

    fn http(url: &str) -> ServerFields {
        ServerFields { url: Set(url.to_owned()), ..ServerFields::default() }
    }

    fn stdio(command: &str) -> ServerFields {
        ServerFields { command: Set(command.to_owned()), ..ServerFields::default() }
    }

    fn made(fields: ServerFields) -> Server {
        merge(&Server::default(), fields).expect("good fields")
    }

    fn refused(server: &Server, fields: ServerFields, expect: &str) {
        assert_eq!(merge(server, fields).expect_err("bad fields").to_string(), expect);
    }

    #[test]
    fn the_command_wins_over_the_address() {
        let headers = Set(vec![("X-A".to_owned(), Secret::new("1"))]);
        let both = ServerFields { command: Set("npx".to_owned()), headers, ..http("http://h/") };
        assert!(matches!(made(both).transport, Transport::Stdio { .. }));
    }

    #[test]
    fn one_of_both_is_needed() {
        let expect = "`url` or `command` must be given: where the server answers, or what to run";
        refused(&Server::default(), ServerFields::default(), expect);
        refused(
            &made(http("http://h/")),
            ServerFields { url: Reset, ..Default::default() },
            expect,
        );
        refused(&made(stdio("npx")), ServerFields { command: Reset, ..Default::default() }, expect);
    }

    #[test]
    fn a_change_may_turn_one_kind_into_the_other() {
        let server = made(stdio("npx"));
        let turned = merge(&server, http("http://h/")).expect("good fields");
        assert_eq!(changed(&server, &turned), ["url", "command"]);
        let back = merge(&turned, stdio("npx")).expect("good fields");
        assert_eq!(back, server);
    }

    #[test]
    fn fields_of_the_other_kind_are_refused() {
        let env = Set(vec![("A".to_owned(), Secret::new("1"))]);
        refused(
            &made(http("http://h/")),
            ServerFields { env, ..Default::default() },
            "`env` is for servers that run a `command`; this one has a `url`",
        );
        refused(
            &made(stdio("npx")),
            ServerFields { ca_file: Set("ca.pem".to_owned()), ..Default::default() },
            "`ca_file` is for servers with a `url`; this one runs a `command`",
        );
        let cleared = ServerFields { headers: Set(Vec::new()), ca_file: Reset, ..stdio("npx") };
        assert!(merge(&Server::default(), cleared).is_ok());
    }
}
