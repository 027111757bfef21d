//! Options that several commands of the meter share, as the experiments take them.

use crate::args::meter::{TargetArgs, ThresholdArgs};
use crate::args::shared::TlsArgs;
use crate::failure::Failure;
use device::Method;
use meter::{Access, RateAlarmConfig, TargetSpec};
use units::ByteCount;

/// Bytes of the files that are made, unless --size is given.
pub(super) const SIZE: ByteCount = ByteCount(4 << 30);

/// The value of an option that must be given; `hint` says what would do.
pub(super) fn required<'a>(
    option: &str,
    value: Option<&'a str>,
    hint: &str,
) -> Result<&'a str, Failure> {
    // Not `required` in the parser, whose error names the option but none of its values.
    value.ok_or_else(|| Failure::usage(format!("--{option} is missing")).hint(hint))
}

/// `--target` and the options that say how it is used.
pub(super) fn target(args: &TargetArgs, method: Method) -> Result<TargetSpec, Failure> {
    let hint = "a directory, a file, a block device, s3://BUCKET, a title's address, sim:MODEL, \
                or null:";
    Ok(TargetSpec {
        target: required("target", args.target.as_deref(), hint)?.to_owned(),
        size: args.size.unwrap_or(SIZE),
        fill_level: args.fill_level,
        buffered: args.buffered,
        destructive: args.overwrite.destroy,
        method,
        drop_caches: args.drop_caches,
        access: access(args, &args.tls)?,
    })
}

/// How buckets are reached: by the command line, and where it has no value by the environment.
fn access(args: &TargetArgs, tls: &TlsArgs) -> Result<Access, Failure> {
    let mut access = Access::from_variables(&|name| std::env::var(name).ok());
    if let Some(endpoint) = &args.endpoint {
        access.endpoint.clone_from(endpoint);
    }
    if let Some(region) = &args.region {
        access.region.clone_from(region);
    }
    access.trust = tls.trust()?;
    access.identity = tls.identity()?;
    Ok(access)
}

/// `--threshold`, `--threshold-window` and `--threshold-each`.
pub(super) fn alarm(args: &ThresholdArgs) -> RateAlarmConfig {
    RateAlarmConfig {
        rate: args.threshold,
        window: args.threshold_window,
        each: args.threshold_each,
    }
}
