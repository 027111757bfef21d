//! A 20 TB, 7,200 rpm nearline disk of the 2020s (Exos X20 class), conventional recording.
//!
//! From data sheets of the class: 285 MB/s outermost, 256 MB of cache, 7,200 rpm. Not published,
//! taken from reviews: about 140 MB/s innermost, mean seek about 8 ms, full stroke 15 ms, about 168
//! random reads a second at depth 16. The zones are cut from 287 - 148 c^1.1 MB/s over the cylinder
//! fraction c.
use crate::parameters::{Mechanics, Parameters, SeekTimes, Spinning, Zone, zone};

pub(super) const PARAMETERS: Parameters = Parameters {
    name: "hdd-20tb",
    title: "20 TB nearline disk, 7,200 rpm (2020s)",
    capacity: 20_000_588_955_648,
    mechanics: Mechanics::Spinning(Spinning {
        rpm: 7_200,
        cylinders: 400_000,
        overhead_ms: 0.1,
        seek: SeekTimes {
            settle_ms: 0.6,
            track_ms: 0.3,
            root_ms: 12.3,
            knee: 1.0 / 3.0,
            full_ms: 15.0,
        },
        read_ahead: 2 << 20,
        bus_mb_s: 550.0,
        zones: ZONES,
    }),
};

const ZONES: &[Zone] = &[
    zone(0.0548, 284.91),
    zone(0.1087, 279.99),
    zone(0.1616, 274.70),
    zone(0.2134, 269.20),
    zone(0.2641, 263.53),
    zone(0.3137, 257.73),
    zone(0.3621, 251.83),
    zone(0.4094, 245.83),
    zone(0.4556, 239.75),
    zone(0.5005, 233.60),
    zone(0.5443, 227.39),
    zone(0.5868, 221.11),
    zone(0.6282, 214.78),
    zone(0.6683, 208.40),
    zone(0.7072, 201.98),
    zone(0.7447, 195.51),
    zone(0.7811, 188.99),
    zone(0.8162, 182.44),
    zone(0.8501, 175.85),
    zone(0.8826, 169.22),
    zone(0.9139, 162.56),
    zone(0.9439, 155.87),
    zone(0.9726, 149.14),
    zone(1.0000, 142.39),
];
