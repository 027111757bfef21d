//! The address of a bucket, its endpoint, and the credentials.

use super::signature::Signer;
use crate::error::MeterError;
use rustls::crypto::ring;
use rusty_s3::{Bucket, UrlStyle};
use std::sync::Arc;
use tenuto_client::tls::{Identity, Proof, Trust};
use units::Reason;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

/// An address `s3://BUCKET[/PREFIX]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The bucket's name.
    pub bucket: String,
    /// The prefix of object names: empty, or ends with `/`.
    pub prefix: String,
}

/// The endpoint of the bucket, and the credentials.
#[derive(Clone, Default)]
pub struct Access {
    /// The endpoint's URL, such as `http://127.0.0.1:9000`.
    pub endpoint: String,
    /// The region, such as `eu-central-1`; most self-hosted servers ignore it.
    pub region: String,
    /// Key, secret and session token; without them requests are not signed.
    pub keys: Option<(String, String, Option<String>)>,
    /// The certificates that are trusted behind an `https` endpoint.
    pub trust: Trust,
    /// The client certificate, for an endpoint that asks for one.
    pub identity: Option<Identity>,
}

impl Address {
    /// Whether `text` has the scheme of a bucket's address.
    pub(crate) fn is(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// Parses an address.
    pub(crate) fn parse(text: &str) -> Result<Self, MeterError> {
        let rest = text.strip_prefix(SCHEME).unwrap_or_default();
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(MeterError::usage(format!(
                "'{text}' is not an address of the form s3://BUCKET[/PREFIX]"
            )));
        }
        let prefix = match prefix.trim_matches('/') {
            "" => String::new(),
            prefix => format!("{prefix}/"),
        };
        Ok(Self { bucket: bucket.to_owned(), prefix })
    }
}

const SCHEME: &str = "s3://";

impl Access {
    /// Takes the access from the variables that other programs use: `AWS_ENDPOINT_URL_S3` or
    /// `AWS_ENDPOINT_URL`, `AWS_REGION` or `AWS_DEFAULT_REGION`, `AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`. `var` looks one up.
    pub fn from_variables(var: &dyn Fn(&str) -> Option<String>) -> Self {
        let var = |name| var(name).filter(|value| !value.is_empty());
        let keys = var("AWS_ACCESS_KEY_ID").zip(var("AWS_SECRET_ACCESS_KEY"));
        Self {
            endpoint: var("AWS_ENDPOINT_URL_S3")
                .or_else(|| var("AWS_ENDPOINT_URL"))
                .unwrap_or_default(),
            region: var("AWS_REGION")
                .or_else(|| var("AWS_DEFAULT_REGION"))
                .unwrap_or_else(|| REGION.to_owned()),
            keys: keys.map(|(key, secret)| (key, secret, var("AWS_SESSION_TOKEN"))),
            trust: Trust::default(),
            identity: None,
        }
    }

    pub(super) fn bucket(&self, name: &str) -> Result<Bucket, MeterError> {
        let endpoint = &self.endpoint;
        if endpoint.is_empty() {
            return Err(MeterError::usage("nothing says where the bucket is")
                .hint("give --endpoint http://HOST:PORT, or set AWS_ENDPOINT_URL"));
        }
        let unclear = || {
            let form = "an endpoint of the form http[s]://HOST[:PORT]";
            MeterError::usage(format!("'{endpoint}' is not {form}"))
        };
        let url = endpoint.parse().map_err(|_| unclear())?;
        let bucket = Bucket::new(url, UrlStyle::Path, name.to_owned(), self.region.clone());
        bucket.map_err(|_| unclear())
    }

    /// The TLS configuration for an `https` endpoint.
    pub(super) fn tls(&self) -> Result<TlsConfig, MeterError> {
        let provider = Arc::new(ring::default_provider());
        let config = TlsConfig::builder().unversioned_rustls_crypto_provider(provider);
        let (roots, own) = match self.endpoint.starts_with("https://") {
            true => {
                let unusable = |reason: Reason| MeterError::of(&reason).into_usage();
                let own = self.identity.as_ref().map(Identity::read).transpose();
                (self.trust.roots().map_err(unusable)?, own.map_err(unusable)?)
            }
            false => (Vec::new(), None),
        };
        let roots = roots.iter().map(|root| Certificate::from_der(root).to_owned());
        Ok(config
            .root_certs(RootCerts::from(roots))
            .disable_verification(self.trust == Trust::Anybody)
            .client_cert(own.as_ref().map(client_cert))
            .build())
    }

    pub(super) fn signer(&self) -> Option<Signer> {
        let (key, secret, token) = self.keys.clone()?;
        Some(Signer { key, secret, token, region: self.region.clone() })
    }
}

/// Converts an identity to the type of the HTTP library.
fn client_cert(own: &Proof) -> ClientCert {
    let chain: Vec<_> = own.chain.iter().map(|one| Certificate::from_der(one).to_owned()).collect();
    let key = PrivateKey::from_pem(&own.key_pem).expect("it was read before");
    ClientCert::new_with_certs(&chain, key)
}

/// The region of servers that have none.
const REGION: &str = "us-east-1";
