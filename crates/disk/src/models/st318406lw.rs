//! Seagate Cheetah 36ES ST318406LW, 18 GB, 2001: the larger disk of Makaroff, Coutu and Liu.
//!
//! From the product manual (100141982): 10,000 rpm, mean read seek 5.2 ms, one platter. Assumed
//! from its generation: 58 to 38 MB/s sustained, one track 0.6 ms, full stroke 10.5 ms, 0.25 ms a
//! command. 35,843,670 sectors.
use crate::parameters::{Mechanics, Parameters, SeekTimes, Spinning, Zone, zone};

pub(super) const PARAMETERS: Parameters = Parameters {
    name: "st318406lw",
    title: "Seagate Cheetah 36ES ST318406LW, 18 GB, 10,000 rpm (2001)",
    capacity: 35_843_670 * 512,
    mechanics: Mechanics::Spinning(Spinning {
        rpm: 10_000,
        cylinders: 18_500,
        overhead_ms: 0.25,
        seek: SeekTimes {
            settle_ms: 0.4,
            track_ms: 0.2,
            root_ms: 7.967,
            knee: 1.0 / 3.0,
            full_ms: 10.5,
        },
        read_ahead: 512 << 10,
        bus_mb_s: 160.0,
        zones: ZONES,
    }),
};

const ZONES: &[Zone] = &[
    zone(0.0836, 57.74),
    zone(0.1661, 56.90),
    zone(0.2470, 55.87),
    zone(0.3262, 54.70),
    zone(0.4036, 53.43),
    zone(0.4791, 52.06),
    zone(0.5524, 50.62),
    zone(0.6235, 49.12),
    zone(0.6924, 47.55),
    zone(0.7589, 45.92),
    zone(0.8230, 44.24),
    zone(0.8846, 42.51),
    zone(0.9436, 40.74),
    zone(1.0000, 38.92),
];
