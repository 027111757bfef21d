//! The address of a bucket, its endpoint, and the credentials.

use crate::signature::Signer;
use crate::{S3Error, S3ErrorKind};
use rustls::crypto::ring;
use rusty_s3::{Bucket, UrlStyle};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use tenuto_client::tls::{Identity, Proof, Trust};
use units::Reason;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

/// An address `s3://BUCKET[/PREFIX]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct S3Address {
    /// The bucket's name.
    pub bucket: String,
    /// The prefix of object names: empty, or ends with `/`.
    pub prefix: String,
}

/// The endpoint of the bucket, and the credentials.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct S3Access {
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

impl S3Address {
    /// Whether `text` has the scheme of a bucket's address.
    pub fn is(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// Parses an address.
    ///
    /// # Errors
    /// A usage error where no bucket is named.
    pub fn parse(text: &str) -> Result<Self, S3Error> {
        let rest = text.strip_prefix(SCHEME).unwrap_or_default();
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(S3Error::usage(format!(
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

impl fmt::Display for S3Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.bucket, self.prefix)
    }
}

const SCHEME: &str = "s3://";

impl S3Access {
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

    pub(crate) fn bucket(&self, name: &str) -> Result<Bucket, S3Error> {
        let endpoint = &self.endpoint;
        if endpoint.is_empty() {
            return Err(S3Error::usage("nothing says where the bucket is")
                .with_hint("give --endpoint http://HOST:PORT, or set AWS_ENDPOINT_URL"));
        }
        let unclear = || {
            let form = "an endpoint of the form http[s]://HOST[:PORT]";
            S3Error::usage(format!("'{endpoint}' is not {form}"))
        };
        let url = endpoint.parse().map_err(|_| unclear())?;
        let bucket = Bucket::new(url, UrlStyle::Path, name.to_owned(), self.region.clone());
        bucket.map_err(|_| unclear())
    }

    /// The TLS configuration for an `https` endpoint.
    pub(crate) fn tls(&self) -> Result<TlsConfig, S3Error> {
        let provider = Arc::new(ring::default_provider());
        let config = TlsConfig::builder().unversioned_rustls_crypto_provider(provider);
        let (roots, own) = match self.endpoint.starts_with("https://") {
            true => {
                let unusable = |reason: Reason| S3Error { kind: S3ErrorKind::Usage, reason };
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

    pub(crate) fn signer(&self) -> Option<Signer> {
        let (key, secret, token) = self.keys.clone()?;
        Some(Signer { key, secret, token, region: self.region.clone() })
    }
}

/// Without the secrets, which would be read in a log.
impl fmt::Debug for S3Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { endpoint, region, keys, .. } = self;
        let key = keys.as_ref().map(|(key, ..)| key);
        write!(f, "S3Access {{ endpoint: {endpoint:?}, region: {region:?}, key: {key:?}, .. }}")
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
