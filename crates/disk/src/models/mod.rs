//! The disks that come with Tenuto: one file each, its sources on top.
//!
//! To add one: a file with its `PARAMETERS`, a line in [`ALL`].

mod atlas_iv;
mod hdd_20tb;
mod ssd_nvme;
mod ssd_sata;
mod st318406lw;
mod st39183w;

use crate::parameters::Parameters;

/// Oldest first, spinning before flash.
pub(crate) const ALL: [&Parameters; 6] = [
    &st39183w::PARAMETERS,
    &atlas_iv::PARAMETERS,
    &st318406lw::PARAMETERS,
    &hdd_20tb::PARAMETERS,
    &ssd_sata::PARAMETERS,
    &ssd_nvme::PARAMETERS,
];
