//! The certificate to serve with: read at the start and again on SIGHUP, without a restart.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use arc_swap::ArcSwap;
use pingora_core::listeners::tls::Acceptor;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// What TLS connections are accepted with.
pub struct Tls {
    pub(crate) acceptor: Acceptor,
    cert: PathBuf,
    key: PathBuf,
    present: Arc<Present>,
}

/// The pair that new connections get.
#[derive(Debug)]
struct Present(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Present {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("cert", &self.cert).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads a certificate chain and its key, both PEM.
    ///
    /// # Errors
    /// Names the file and what is wrong with it.
    pub fn read(cert: &Path, key: &Path) -> anyhow::Result<Self> {
        let pair = read_pair(cert, key)?;
        let present = Arc::new(Present(ArcSwap::from_pointee(pair)));
        let mut config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_cert_resolver(present.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = Acceptor::from_server_config(Arc::new(config));
        Ok(Self { acceptor, cert: cert.to_owned(), key: key.to_owned(), present })
    }

    /// Reads the files again. Connections that are open keep what they have.
    ///
    /// # Errors
    /// As [`Tls::read`]; the old pair is kept then.
    pub fn reload(&self) -> anyhow::Result<()> {
        self.present.0.store(Arc::new(read_pair(&self.cert, &self.key)?));
        Ok(())
    }

    /// When the certificate ends, in seconds since the Unix epoch.
    pub fn not_after(&self) -> i64 {
        let pair = self.present.0.load();
        let leaf = pair.cert.first().expect("read_pair takes no empty chain");
        not_after(leaf).expect("read_pair has parsed it")
    }
}

fn read_pair(cert: &Path, key: &Path) -> anyhow::Result<CertifiedKey> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect)
        .with_context(|| format!("failed to read the certificate {}", cert.display()))?;
    let leaf = chain.first().with_context(|| format!("{} holds no certificate", cert.display()))?;
    not_after(leaf)
        .with_context(|| format!("{} does not start with a certificate", cert.display()))?;
    let key_der = PrivateKeyDer::from_pem_file(key)
        .with_context(|| format!("failed to read the private key {}", key.display()))?;
    CertifiedKey::from_der(chain, key_der, &rustls::crypto::ring::default_provider())
        .with_context(|| format!("{} and {} do not fit", cert.display(), key.display()))
}

fn not_after(certificate: &CertificateDer<'_>) -> Option<i64> {
    // pingora's own parser panics on what is no certificate, so look first.
    rustls::server::ParsedCertificate::try_from(certificate).ok()?;
    let parsed = pingora_core::utils::tls::parse_x509(certificate);
    Some(parsed.validity().not_after.timestamp())
}
