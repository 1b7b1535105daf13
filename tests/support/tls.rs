//! Certificates of an authority of the tests' own.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;

pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// What a `ca_file` holds.
    pub(crate) pem: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut own = CertificateParams::new(Vec::new()).unwrap();
        own.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = own.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(own, key), pem }
    }

    /// A server of this name, with a certificate that ends with the year before `ends`.
    pub(crate) fn certify(&self, name: &str, ends: i32) -> rustls::ServerConfig {
        let key = KeyPair::generate().unwrap();
        let mut own = CertificateParams::new(vec![name.to_owned()]).unwrap();
        own.not_after = rcgen::date_time_ymd(ends, 1, 1);
        let certificate = own.signed_by(&key, &self.issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap()
    }
}
