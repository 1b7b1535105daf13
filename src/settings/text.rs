//! Single values as people write them, the same in the conf file and in the environment.

use std::fmt;
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use serde::de::{self, Deserialize, Deserializer, Unexpected, Visitor};

/// A value that is read from a short text.
pub(super) trait FromText: Sized {
    /// What to write, put after "must be".
    const EXPECTED: &'static str;
    /// Reads it.
    fn from_text(text: &str) -> Option<Self>;
    /// What null stands for, if it may be written.
    fn absent() -> Option<Self> {
        None
    }
}

/// How log lines look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Format {
    /// Text on a terminal, JSON elsewhere.
    #[default]
    Auto,
    /// For people.
    Text,
    /// For machines.
    Json,
}

/// Which log lines are written: directives that tracing's `EnvFilter` reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Level(pub(crate) String);

impl Default for Level {
    fn default() -> Self {
        Self("info".to_owned())
    }
}

impl FromText for bool {
    const EXPECTED: &'static str = "true or false";
    fn from_text(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some(true),
            "false" | "no" | "off" | "0" => Some(false),
            _ => None,
        }
    }
}

impl FromText for u16 {
    const EXPECTED: &'static str = "a whole number from 0 to 65535";
    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl FromText for IpAddr {
    const EXPECTED: &'static str = "an IP address such as 127.0.0.1 or 0.0.0.0";
    fn from_text(text: &str) -> Option<Self> {
        if text.eq_ignore_ascii_case("localhost") {
            return Some(Self::V4(Ipv4Addr::LOCALHOST));
        }
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        bare.unwrap_or(text).parse().ok()
    }
}

impl FromText for PathBuf {
    const EXPECTED: &'static str = "a path";
    fn from_text(text: &str) -> Option<Self> {
        Some(text.into())
    }
}

impl FromText for String {
    const EXPECTED: &'static str = "text";
    fn from_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

impl FromText for Vec<String> {
    const EXPECTED: &'static str = "names separated by commas";
    fn from_text(text: &str) -> Option<Self> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        Some(parts.map(str::to_owned).collect())
    }
}

impl FromText for Format {
    const EXPECTED: &'static str = "auto, text or json";
    fn from_text(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(Self::Auto),
            "text" => Some(Self::Text),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}

impl FromText for Level {
    const EXPECTED: &'static str =
        "error, warn, info, debug or trace, or such as info,mcpm_upstream=debug";
    /// `EnvFilter` takes a misspelt level for the name of a module and shows nothing at all.
    fn from_text(text: &str) -> Option<Self> {
        const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];
        let directive = |part: &str| {
            let level = part.rsplit_once('=').map_or(part, |(_, level)| level);
            LEVELS.contains(&level.trim())
        };
        text.split(',').all(directive).then(|| Self(text.to_owned()))
    }
}

impl FromText for catalog::Mode {
    const EXPECTED: &'static str = "direct, hybrid or adaptive";
    fn from_text(text: &str) -> Option<Self> {
        Self::parse(text)
    }
}

impl FromText for catalog::Pinned {
    const EXPECTED: &'static str = "auto, legacy or modern";
    fn from_text(text: &str) -> Option<Self> {
        Self::parse(text)
    }
}

/// Bytes, within what one body may be.
struct Size(usize);

impl FromText for Size {
    const EXPECTED: &'static str = "a size from 1KiB to 1GiB, such as 16MiB";
    fn from_text(text: &str) -> Option<Self> {
        let units = [("", 1), ("b", 1), ("kib", 1 << 10), ("mib", 1 << 20), ("gib", 1 << 30)];
        let decimal = [("kb", 1_000), ("mb", 1_000_000), ("gb", 1_000_000_000)];
        let bytes = with_unit(text, units.iter().chain(&decimal))?;
        let bytes = usize::try_from(bytes).ok()?;
        (1 << 10..=1 << 30).contains(&bytes).then_some(Self(bytes))
    }
}

/// How many of something.
struct Count(usize);

impl FromText for Count {
    const EXPECTED: &'static str = "a whole number from 1 to 1000000";
    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok().filter(|count| (1..=1_000_000).contains(count)).map(Self)
    }
}

/// A time, within what a setting may be.
struct Time(Duration);

impl FromText for Time {
    const EXPECTED: &'static str = "a time from 1s to 7d, such as 30s, 30m or 2h";
    fn from_text(text: &str) -> Option<Self> {
        const SECOND: u64 = 1000;
        const DAY: u64 = 86_400 * SECOND;
        let units =
            [("ms", 1), ("s", SECOND), ("m", 60 * SECOND), ("h", 3600 * SECOND), ("d", DAY)];
        let millis = with_unit(text, units.iter())?;
        (SECOND..=7 * DAY).contains(&millis).then(|| Self(Duration::from_millis(millis)))
    }
}

fn with_unit<'a>(text: &str, mut units: impl Iterator<Item = &'a (&'a str, u64)>) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim_start().to_ascii_lowercase();
    let (_, factor) = units.find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// A value of the conf file, whatever YAML takes it for.
pub(super) fn value<'de, D: Deserializer<'de>, T: FromText>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(Scalar(PhantomData))
}

pub(super) fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    value::<D, Size>(deserializer).map(|size| size.0)
}

pub(super) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    value::<D, Count>(deserializer).map(|count| count.0)
}

pub(super) fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    value::<D, Time>(deserializer).map(|time| time.0)
}

/// A part of the file that may be left empty, as when all its lines are commented out.
pub(super) fn section<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

struct Scalar<T>(PhantomData<T>);

impl<T: FromText> Visitor<'_> for Scalar<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        T::from_text(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_unit<E: de::Error>(self) -> Result<T, E> {
        T::absent().ok_or_else(|| E::invalid_type(Unexpected::Unit, &self))
    }

    fn visit_bool<E: de::Error>(self, found: bool) -> Result<T, E> {
        self.visit_str(if found { "true" } else { "false" })
    }

    fn visit_u64<E: de::Error>(self, found: u64) -> Result<T, E> {
        self.visit_str(&found.to_string())
    }

    fn visit_i64<E: de::Error>(self, found: i64) -> Result<T, E> {
        self.visit_str(&found.to_string())
    }

    fn visit_f64<E: de::Error>(self, found: f64) -> Result<T, E> {
        self.visit_str(&found.to_string())
    }
}
