//! Session ids that carry what is needed to go on after a restart (P11), and that nobody
//! else can make: the content, followed by a code over it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use catalog::{Caller, GroupId, KeyId};
use hmac::{Hmac, KeyInit, Mac};
use protocol::Version;
use sha2::Sha256;

/// Format of the content; another one is unknown.
const FORMAT: u8 = 1;
const CONTENT: usize = 1 + 1 + 1 + 8 + 8 + 8 + 8;
const CODE: usize = 16;

/// Makes and opens session ids.
pub(crate) struct Sealer(Hmac<Sha256>);

/// What a session id says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sealed {
    pub(crate) caller: Caller,
    pub(crate) version: Version,
    /// Tells sessions of one caller apart.
    pub(crate) nonce: u64,
    /// Seconds since the Unix epoch.
    pub(crate) opened_at: i64,
}

impl Sealer {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        Self(Hmac::new_from_slice(key).expect("HMAC takes keys of any length"))
    }

    /// The id as text of visible ASCII (F21).
    pub(crate) fn seal(&self, sealed: &Sealed) -> String {
        let mut bytes = Vec::with_capacity(CONTENT + CODE);
        let version = Version::ALL.iter().position(|v| *v == sealed.version).unwrap_or_default();
        let (kind, key) = match sealed.caller.key {
            Some(KeyId(id)) => (1, id),
            None => (0, 0),
        };
        bytes.extend([FORMAT, version as u8, kind]);
        bytes.extend(key.to_be_bytes());
        bytes.extend(sealed.caller.group.0.to_be_bytes());
        bytes.extend(sealed.nonce.to_be_bytes());
        bytes.extend(sealed.opened_at.to_be_bytes());
        let code = self.0.clone().chain_update(&bytes).finalize().into_bytes();
        bytes.extend(&code[..CODE]);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Opens an id; `None` for one that was not made here.
    pub(crate) fn open(&self, id: &str) -> Option<Sealed> {
        let bytes = URL_SAFE_NO_PAD.decode(id).ok()?;
        let (content, code) = bytes.split_at_checked(CONTENT)?;
        self.0.clone().chain_update(content).verify_truncated_left(code).ok()?;
        if code.len() != CODE || content[0] != FORMAT {
            return None;
        }
        let number = |at: usize| -> Option<[u8; 8]> { content.get(at..at + 8)?.try_into().ok() };
        let key = KeyId(i64::from_be_bytes(number(3)?));
        Some(Sealed {
            version: *Version::ALL.get(usize::from(content[1]))?,
            caller: Caller {
                key: (content[2] == 1).then_some(key),
                group: GroupId(i64::from_be_bytes(number(11)?)),
                secret: 0,
            },
            nonce: u64::from_be_bytes(number(19)?),
            opened_at: i64::from_be_bytes(number(27)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Caller, GroupId, KeyId, Sealed, Sealer, Version};

    fn sealed() -> Sealed {
        Sealed {
            caller: Caller { key: Some(KeyId(7)), group: GroupId(2), secret: 0 },
            version: Version::V2025_06_18,
            nonce: 0xdead_beef,
            opened_at: 1_800_000_000,
        }
    }

    #[test]
    fn opens_what_it_sealed() {
        let sealer = Sealer::new(&[1; 32]);
        let id = sealer.seal(&sealed());
        assert!(id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)));
        assert_eq!(sealer.open(&id), Some(sealed()));
        assert_eq!(Sealer::new(&[1; 32]).open(&id), Some(sealed()), "after a restart");
    }

    #[test]
    fn ses_02_refuses_what_it_did_not() {
        let sealer = Sealer::new(&[1; 32]);
        let id = sealer.seal(&sealed());
        assert_eq!(Sealer::new(&[2; 32]).open(&id), None);
        let first = if id.starts_with('A') { 'B' } else { 'A' };
        let altered = format!("{first}{}", &id[1..]);
        for odd in ["", "made-up", &id[..20], &format!("{id}AA"), &altered] {
            assert_eq!(sealer.open(odd), None, "{odd}");
        }
    }
}
