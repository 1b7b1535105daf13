//! The environment as a value: the process's variables, and `.env` files behind them. Nothing
//! else in the program reads or sets variables, so tests have their own.

use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
use std::path::{Path, PathBuf};

use catalog::Secret;

use super::error::Error;
use super::text::FromText;

/// Variables and the directory that relative paths start from.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Env {
    variables: BTreeMap<String, String>,
    folder: PathBuf,
}

/// Names only: values may be secrets.
impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.variables.keys()).finish()
    }
}

impl Env {
    /// The process's own. Variables that are not UTF-8 are left out.
    pub(crate) fn process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self::new(std::env::vars_os().filter_map(text), PathBuf::new())
    }

    /// These variables, in a working directory.
    pub(crate) fn new(
        variables: impl IntoIterator<Item = (String, String)>,
        folder: PathBuf,
    ) -> Self {
        Self { variables: variables.into_iter().collect(), folder }
    }

    /// A variable's value; an empty one counts as not set, as compose files write it.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The path as seen from the working directory.
    pub(crate) fn at(&self, path: &Path) -> PathBuf {
        self.folder.join(path)
    }

    /// This environment, then the `.env` file in `beside`, then the one in the working
    /// directory; what comes first wins.
    pub(super) fn with_files(&self, beside: Option<&Path>) -> Result<Self, Error> {
        let mut env = self.clone();
        let folders = beside.map(|folder| self.at(folder)).into_iter().chain([self.folder.clone()]);
        for folder in folders {
            let path = folder.join(".env");
            let text = match std::fs::read_to_string(&path) {
                Ok(text) => text,
                // Some keep a directory of that name.
                Err(error) if matches!(error.kind(), NotFound | NotADirectory | IsADirectory) => {
                    continue;
                }
                Err(error) => return Err(Error::Unreadable { path, why: error.to_string() }),
            };
            for (name, value) in read(&path, &text)? {
                env.variables.entry(name).or_insert(value);
            }
        }
        Ok(env)
    }

    /// Replaces `target` when the variable is set.
    pub(super) fn set<T: FromText>(&self, name: &'static str, target: &mut T) -> Result<(), Error> {
        if let Some(text) = self.get(name) {
            *target = T::from_text(text.trim()).ok_or_else(|| Error::Variable {
                name,
                expected: T::EXPECTED,
                found: text.to_owned(),
            })?;
        }
        Ok(())
    }

    /// Like [`Env::set`], for a setting that may be absent.
    pub(super) fn set_some<T: FromText + Default>(
        &self,
        name: &'static str,
        target: &mut Option<T>,
    ) -> Result<(), Error> {
        if self.get(name).is_some() {
            self.set(name, target.get_or_insert_default())?;
        }
        Ok(())
    }

    /// A secret, from the variable or from the file that `file` names.
    pub(super) fn secret(
        &self,
        name: &'static str,
        file: &'static str,
    ) -> Result<Option<Secret>, Error> {
        let (value, path) = match (self.get(name), self.get(file)) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => return Err(Error::Both { name, file }),
            (Some(value), None) => (value.to_owned(), None),
            (None, Some(path)) => {
                let path = self.at(Path::new(path));
                let value = std::fs::read_to_string(&path).map_err(|error| Error::Unreadable {
                    path: path.clone(),
                    why: format!("{error} (named by `{file}`)"),
                })?;
                (value, Some(path))
            }
        };
        match (value.trim(), path) {
            ("", Some(path)) => Err(Error::Unreadable {
                path,
                why: format!("it is empty, and `{file}` says that it holds a token"),
            }),
            ("", None) => Ok(None),
            (token, _) => Ok(Some(Secret::new(token))),
        }
    }
}

/// The lines of a `.env` file. Its errors name the line, never its text, which may be secret.
fn read(path: &Path, text: &str) -> Result<Vec<(String, String)>, Error> {
    let text = text.trim_start_matches('\u{feff}');
    let mut found = Vec::new();
    for item in dotenvy::from_read_iter(text.as_bytes()) {
        let pair = item.map_err(|error| {
            let line = match &error {
                dotenvy::Error::LineParse(line, _) => {
                    text.lines().position(|each| each.trim() == line.trim()).map(|at| at + 1)
                }
                _ => None,
            };
            Error::DotEnv { path: path.to_owned(), line: line.unwrap_or(found.len() + 1) }
        })?;
        found.push(pair);
    }
    Ok(found)
}
