//! Which stream gets disk, memory and network in which slot.

/// The admission policies that can be chosen at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyKind {
    /// Simulation of the schedule slot by slot (Makaroff, Neufeld & Hutchinson's vbrSim).
    VbrSim,
    /// Sum of the peaks.
    SimpleMaximum,
    /// Sum of the demands in each slot, nothing carried over.
    InstantaneousMaximum,
    /// Sum of the means; no guarantee.
    Average,
    /// Everybody comes in; no guarantee. For comparison.
    None,
}
