//! Quantum Atlas IV, 9 GB, 1999: the smaller disk of Makaroff, Coutu and Liu.
//!
//! The paper says 5,400 rpm; the product line turned at 7,200, and the paper's own calibration (46
//! to 50 reads of 64 KiB in 500 ms, equally spaced over the disk) fits 7,200 better, which is taken
//! here. No measured geometry of this disk is public. Zones are those of its contemporary IBM
//! DNES-309170 as characterised for DiskSim (5 heads, 11,474 cylinders, 390 to 247 sectors a
//! track); the seek curve is that disk's times 0.6, so that the paper's calibration comes out
//! (0.4 ms a command). A stand-in that behaves like theirs, not a portrait.
use crate::parameters::{Mechanics, Parameters, SeekTimes, Spinning, Zone, zone};

pub(super) const PARAMETERS: Parameters = Parameters {
    name: "atlas-iv",
    title: "Quantum Atlas IV, 9 GB, 7,200 rpm (1999; stand-in)",
    capacity: 17_783_240 * 512,
    mechanics: Mechanics::Spinning(Spinning {
        rpm: 7_200,
        cylinders: 11_474,
        overhead_ms: 0.4,
        seek: SeekTimes {
            settle_ms: 0.3,
            track_ms: 0.33,
            root_ms: 6.6,
            knee: 1.0 / 3.0,
            full_ms: 7.74,
        },
        read_ahead: 128 << 10,
        bus_mb_s: 80.0,
        zones: ZONES,
    }),
};

const ZONES: &[Zone] = &[
    zone(0.0407, 20.47),
    zone(0.1322, 19.61),
    zone(0.2311, 19.11),
    zone(0.3493, 18.42),
    zone(0.4461, 17.71),
    zone(0.5379, 17.03),
    zone(0.6687, 16.39),
    zone(0.8043, 14.99),
    zone(0.8838, 14.31),
    zone(0.9460, 13.64),
    zone(1.0000, 12.96),
];
