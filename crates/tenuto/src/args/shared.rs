//! Options that several commands share, each declared and described once.

use super::values::{Words, described, text, whole};
use crate::failure::Failure;
use crate::out;
use bucket::TitleBucket;
use director::etcd::EtcdAccess;
use http_service::TlsFiles;
use player::AbrRule;
use s3::{S3Access, S3Address};
use serde::Serialize;
use std::path::{Path, PathBuf};
use tenuto_client::tls::{Identity, Trust};

/// `--json`, an option of every command that reports.
#[derive(clap::Args)]
pub(crate) struct ReportArgs {
    /// Report as one JSON object on standard output.
    ///
    /// The names in it are stable; docs/reference/json.md explains each.
    #[arg(long)]
    pub(crate) json: bool,
}

impl ReportArgs {
    /// Prints `object` with `--json`, else the page for people.
    pub(crate) fn show(&self, object: &impl Serialize, page: impl FnOnce() -> String) {
        if self.json {
            out::print_json(object);
        } else {
            out::print(&page());
        }
    }

    /// Prints as [`ReportArgs::show`] does, then calls `files`, also where the reader of the report
    /// has closed its end: a report is not lost with its files, nor they with it.
    pub(crate) fn show_then(
        &self,
        object: &impl Serialize,
        page: impl FnOnce() -> String,
        files: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let text = if self.json { out::json(object) } else { page() };
        let printed = out::try_print(&text);
        let written = files();
        if written.is_ok() {
            out::end_unless_printed(printed);
        }
        written
    }
}

/// `--destroy`, the one option that allows overwriting.
#[derive(clap::Args)]
pub(crate) struct OverwriteArgs {
    /// Allow existing data to be overwritten.
    ///
    /// The one option that allows overwriting, in every command.
    #[arg(long)]
    pub(crate) destroy: bool,
}

impl OverwriteArgs {
    /// Refuses a file that exists, unless it may be overwritten.
    pub(crate) fn check(&self, path: &Path) -> Result<(), Failure> {
        // A link to nothing counts as a file that exists: writing would create its target.
        if path.is_dir() {
            return Err(Failure::new(format!("{} is a directory", path.display()))
                .hint("name a file in it"));
        }
        if self.destroy || path.symlink_metadata().is_err() {
            return Ok(());
        }
        Err(Failure::new(format!("{} would be overwritten", path.display()))
            .hint("if that is meant, allow it with --destroy"))
    }
}

/// The certificate of a server.
#[derive(clap::Args)]
pub(crate) struct CertificateArgs {
    /// Answer over TLS, with this certificate.
    ///
    /// A file in PEM: the server's certificate first, then those that lead to an authority which
    /// viewers trust. It is read again when it changes, and no connection ends.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// The private key of --tls-certificate, in PEM, not encrypted.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_key: Option<PathBuf>,
}

impl CertificateArgs {
    /// Both files, or neither: the arguments require each other.
    pub(crate) fn files(&self) -> Option<TlsFiles> {
        let (certificate, key) = self.tls_certificate.clone().zip(self.tls_key.clone())?;
        Some(TlsFiles { certificate, key })
    }

    /// The beginning of the server's addresses.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls_certificate.is_some() { "https" } else { "http" }
    }
}

/// A store, and other stores on which the same command works.
#[derive(clap::Args)]
pub(crate) struct StoresArgs {
    /// The store: a file or a block device.
    pub(crate) store: PathBuf,
    /// Another store on which the command works, too.
    ///
    /// May be given several times. A store that fails is reported and does not stop the others.
    #[arg(long)]
    pub(crate) replica: Vec<PathBuf>,
}

impl StoresArgs {
    /// Whether more than one store is named.
    pub(crate) fn are_several(&self) -> bool {
        !self.replica.is_empty()
    }

    /// Calls `action` with every store. The first error is returned, the later ones are printed.
    pub(crate) fn each(
        &self,
        mut action: impl FnMut(&Path) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut first = Ok(());
        for store in std::iter::once(&self.store).chain(&self.replica) {
            let Err(mut failure) = action(store) else { continue };
            if self.are_several() {
                // With one store the user knows which one it is.
                failure.sentence = format!("{}: {}", store.display(), failure.sentence);
            }
            match first {
                Ok(()) => first = Err(failure),
                Err(_) => out::complain(&failure),
            }
        }
        first
    }
}

/// The server of buckets.
#[derive(clap::Args)]
pub(crate) struct EndpointArgs {
    /// The server of buckets: http[s]://HOST[:PORT].
    ///
    /// Without it AWS_ENDPOINT_URL in the environment, which also has the keys:
    /// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
    #[arg(long, value_name = "URL", value_parser = text())]
    pub(crate) endpoint: Option<String>,
    /// The region of the bucket.
    ///
    /// Without it AWS_REGION in the environment, or us-east-1.
    #[arg(long, value_parser = text())]
    pub(crate) region: Option<String>,
}

impl EndpointArgs {
    /// How buckets are reached: by the command line, and where it has no value by the environment.
    pub(crate) fn access(&self, tls: &TlsArgs) -> Result<S3Access, Failure> {
        let mut access = S3Access::from_variables(&|name| std::env::var(name).ok());
        if let Some(endpoint) = &self.endpoint {
            access.endpoint.clone_from(endpoint);
        }
        if let Some(region) = &self.region {
            access.region.clone_from(region);
        }
        access.trust = tls.trust()?;
        access.identity = tls.identity()?;
        Ok(access)
    }
}

/// What etcd is shown of this program.
#[derive(Clone, clap::Args)]
pub(crate) struct EtcdArgs {
    /// Show etcd this certificate, in PEM: etcd has --client-cert-auth.
    ///
    /// The certificate first, then those that lead to an authority which etcd trusts. The authority
    /// of etcd's own certificate is one that this machine trusts, or in the file of SSL_CERT_FILE.
    #[arg(long, value_name = "FILE", requires_all = ["etcd_key", "cluster"])]
    pub(crate) etcd_cert: Option<PathBuf>,
    /// The private key of --etcd-cert, in PEM, not encrypted.
    #[arg(long, value_name = "FILE", requires = "etcd_cert")]
    pub(crate) etcd_key: Option<PathBuf>,
    /// Be this user of etcd: a file with USER:PASSWORD.
    ///
    /// Other users must not be able to read it. The user of etcd needs the keys that begin with
    /// /tenuto/NAME/, for the cluster NAME.
    #[arg(long, value_name = "FILE", requires = "cluster")]
    pub(crate) etcd_user: Option<PathBuf>,
}

impl EtcdArgs {
    pub(crate) fn access(&self) -> EtcdAccess {
        let Self { etcd_cert, etcd_key, etcd_user } = self.clone();
        EtcdAccess { certificate: etcd_cert, key: etcd_key, user: etcd_user }
    }
}

/// The bucket from which a cluster is filled.
#[derive(clap::Args)]
pub(crate) struct RecordBucketArgs {
    /// Fill the nodes of the cluster from this bucket: s3://BUCKET[/PREFIX].
    ///
    /// Titles come into it by `tenuto bucket push`. A director plans which nodes have copies of
    /// which titles, and nodes write them; so both need it. The keys are AWS_ACCESS_KEY_ID and
    /// AWS_SECRET_ACCESS_KEY in the environment, and the region AWS_REGION.
    #[arg(long, value_name = "BUCKET", value_parser = S3Address::parse, requires = "cluster")]
    pub(crate) bucket: Option<S3Address>,
    /// The server of --bucket: http[s]://HOST[:PORT].
    ///
    /// Without it AWS_ENDPOINT_URL in the environment.
    #[arg(long, value_name = "URL", value_parser = text(), requires = "bucket")]
    pub(crate) bucket_endpoint: Option<String>,
}

impl RecordBucketArgs {
    /// The titles of record; `None` where no bucket is named.
    pub(crate) fn titles(&self) -> Option<TitleBucket> {
        let mut access = S3Access::from_variables(&|name| std::env::var(name).ok());
        if let Some(endpoint) = &self.bucket_endpoint {
            access.endpoint.clone_from(endpoint);
        }
        Some(TitleBucket::new(access, self.bucket.clone()?))
    }
}

/// Certificates for `https://` addresses.
#[derive(clap::Args)]
#[command(next_help_heading = "TLS options")]
pub(crate) struct TlsArgs {
    /// Trust only these authorities' certificates, in PEM.
    ///
    /// Without it the authorities that this machine trusts.
    #[arg(long)]
    pub(crate) ca_file: Option<PathBuf>,
    /// Trust any certificate.
    ///
    /// The connection is encrypted, but the server is not authenticated.
    #[arg(long)]
    pub(crate) insecure: bool,
    /// The client's own certificate, in PEM, for servers that ask.
    ///
    /// Intermediate certificates follow it in the file. All connections use the same certificate.
    #[arg(long)]
    pub(crate) cert_file: Option<PathBuf>,
    /// The key of --cert-file, in PEM, not encrypted.
    ///
    /// Without it the key is read from --cert-file.
    #[arg(long)]
    pub(crate) key_file: Option<PathBuf>,
}

impl TlsArgs {
    /// The authorities that are trusted.
    pub(crate) fn trust(&self) -> Result<Trust, Failure> {
        match (&self.ca_file, self.insecure) {
            (Some(_), true) => {
                Err(Failure::usage("--ca-file and --insecure contradict each other")
                    .hint("leave out --insecure to trust the authorities in the file"))
            }
            (Some(path), false) => Ok(Trust::File(path.clone())),
            (None, true) => Ok(Trust::Anybody),
            (None, false) => Ok(Trust::System),
        }
    }

    /// The client's own certificate.
    pub(crate) fn identity(&self) -> Result<Option<Identity>, Failure> {
        match (&self.cert_file, &self.key_file) {
            (Some(certificates), key) => {
                let key = key.as_ref().unwrap_or(certificates).clone();
                Ok(Some(Identity { certificates: certificates.clone(), key }))
            }
            (None, Some(_)) => Err(Failure::usage("--key-file needs --cert-file")
                .hint("name the certificate that it is the key of with --cert-file")),
            (None, None) => Ok(None),
        }
    }
}

/// `--switching`, an option of commands that play titles.
#[derive(clap::Args)]
pub(crate) struct SwitchingArgs {
    /// How players change between renditions.
    ///
    /// docs/reference/play.md explains the rules, and which pieces count as below the best
    /// rendition.
    #[arg(long, default_value = "never", value_parser = switchings())]
    pub(crate) switching: AbrRule,
}

fn switchings() -> Words<AbrRule> {
    described(AbrRule::NAMES, |rule| match rule {
        AbrRule::Never => "each player keeps the rendition offered first (DASH: the largest)",
        AbrRule::HlsJs => "by measured rate and buffer level, as hls.js does",
    })
}

/// `--seed`, an option of every command that draws random numbers.
#[derive(clap::Args)]
pub(crate) struct SeedArgs {
    /// Seed of all random numbers: the same seed gives the same draws.
    #[arg(long, default_value = "1", value_parser = whole::<u64>(0, u32::MAX.into()))]
    pub(crate) seed: u64,
}
