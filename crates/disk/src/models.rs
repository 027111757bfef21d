//! The built-in disks: one parameter file each, with its sources.
//!
//! To add one, add a file in `models/`, a line in [`TEXTS`], and one in the command table.

use crate::parameters::Parameters;
use std::sync::{Arc, OnceLock};

/// The name and the parameter file of each disk: oldest first, spinning before flash, and then the
/// disks of a publication as they behaved.
pub(crate) const TEXTS: &[(&str, &str)] = &[
    ("st39183w", include_str!("models/st39183w.toml")),
    ("atlas-iv", include_str!("models/atlas-iv.toml")),
    ("st318406lw", include_str!("models/st318406lw.toml")),
    ("hdd-20tb", include_str!("models/hdd-20tb.toml")),
    ("ssd-sata", include_str!("models/ssd-sata.toml")),
    ("ssd-nvme", include_str!("models/ssd-nvme.toml")),
    ("makaroff-small", include_str!("models/makaroff-small.toml")),
    ("makaroff-large", include_str!("models/makaroff-large.toml")),
];

/// All built-in parameters, parsed once; a test parses them all.
pub(crate) fn all() -> &'static [Arc<Parameters>] {
    static ALL: OnceLock<Vec<Arc<Parameters>>> = OnceLock::new();
    ALL.get_or_init(|| {
        let parse = |(name, text): &(&str, &str)| match Parameters::parse(text) {
            Ok(parameters) => Arc::new(parameters),
            Err(error) => panic!("the parameter file of {name}: {error}"),
        };
        TEXTS.iter().map(parse).collect()
    })
}
