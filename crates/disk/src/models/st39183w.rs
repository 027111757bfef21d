//! Seagate Barracuda ST39183W, 9.1 GB, 1999: the disk of Alderman and Diallo's measurements.
//!
//! From the paper: 7,200 rpm (8.33 ms a revolution), settle 0.6 ms, full stroke 17 ms, 100 MB in
//! 6.9 s outermost, 7.8 s on average and 10.9 s innermost (14.5, 12.8, 9.2 MB/s; 1 MB = 10^6 bytes
//! as its own bounds need). Its capacity, 8,638 MB, may be a digit swap: 17,783,240 sectors, common
//! to disks of this size, are 8,683 MiB and are taken here. Ours: the zones, cut from
//! 14.493 - 5.319 c^2.19 MB/s over the cylinder fraction c, which meets the three rates; 1.0 ms for
//! one track and 8 ms for a third of the stroke (the mean seek of its class), a straight line from
//! there; 0.3 ms a command; four segments of 256 KiB of cache, one of which reads ahead.
use crate::parameters::{Mechanics, Parameters, SeekTimes, Spinning, Zone, zone};

pub(super) const PARAMETERS: Parameters = Parameters {
    name: "st39183w",
    title: "Seagate Barracuda ST39183W, 9.1 GB, 7,200 rpm (1999)",
    capacity: 17_783_240 * 512,
    mechanics: Mechanics::Spinning(Spinning {
        rpm: 7_200,
        cylinders: 6_810,
        overhead_ms: 0.3,
        seek: SeekTimes {
            settle_ms: 0.6,
            track_ms: 0.25,
            root_ms: 12.385,
            knee: 1.0 / 3.0,
            full_ms: 17.0,
        },
        read_ahead: 256 << 10,
        bus_mb_s: 40.0,
        zones: ZONES,
    }),
};

const ZONES: &[Zone] = &[
    zone(0.0706, 14.49),
    zone(0.1411, 14.46),
    zone(0.2112, 14.40),
    zone(0.2809, 14.30),
    zone(0.3499, 14.16),
    zone(0.4180, 13.98),
    zone(0.4851, 13.75),
    zone(0.5507, 13.48),
    zone(0.6149, 13.16),
    zone(0.6772, 12.79),
    zone(0.7375, 12.38),
    zone(0.7956, 11.91),
    zone(0.8511, 11.40),
    zone(0.9038, 10.83),
    zone(0.9536, 10.21),
    zone(1.0000, 9.53),
];
