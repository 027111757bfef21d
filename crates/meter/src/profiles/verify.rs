//! Computes a profile's figures again from their definition.

use super::{Definition, Fps, Profile};

impl Profile {
    /// The figures that disagree with the definition, each as a sentence; empty if all agree.
    pub fn disagreements(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        match self.expected_bytes() {
            Some(bytes) if bytes != self.bytes => {
                wrong.push(format!("bytes = {}, and its definition gives {bytes}", self.bytes));
            }
            _ => {}
        }
        if self.definition == Definition::Rate && self.bits_per_s.zip(self.fps).is_none() {
            wrong.push("definition 'rate' needs bits_per_s and fps".to_owned());
        }
        if let (Definition::Pcm { .. }, None) = (self.definition, self.fps) {
            wrong.push("definition 'pcm' needs fps".to_owned());
        }
        if let (Some(published), Some(rate)) = (self.bits_per_s, self.rate())
            // Published rates are rounded.
            && published.abs_diff(rate.0) > published / ROUNDING
        {
            wrong.push(format!("bits_per_s = {published}, and bytes and fps give {}", rate.0));
        }
        wrong
    }

    fn expected_bytes(&self) -> Option<u64> {
        let by_frame = |bits_per_s: u64, Fps { frames, seconds }: Fps| {
            let bytes = u128::from(bits_per_s) * u128::from(seconds) / (u128::from(frames) * 8);
            u64::try_from(bytes).unwrap_or(u64::MAX)
        };
        // Saturating, because a user's file may contain any number.
        let area = |width: u64, height: u64| width.saturating_mul(height);
        match self.definition {
            Definition::Rate => Some(by_frame(self.bits_per_s?, self.fps?)),
            Definition::Table => None,
            Definition::V210 { width, height } => {
                Some(area(width.div_ceil(48).saturating_mul(128), height))
            }
            Definition::Dpx10 { width, height } => {
                Some(area(width, height).saturating_mul(4).saturating_add(2048))
            }
            Definition::ExrHalf { width, height } => Some(area(width, height).saturating_mul(6)),
            Definition::Packed { width, height, bits } => {
                Some(area(width, height).saturating_mul(bits).div_ceil(8))
            }
            Definition::Pcm { channels, rate, bits } => {
                Some(by_frame(channels.saturating_mul(rate).saturating_mul(bits), self.fps?))
            }
        }
    }
}

/// The rounding of published rates, to whole megabits: at most half a megabit of 100.
const ROUNDING: u64 = 200;

#[cfg(test)]
mod tests {
    use crate::profiles::named;

    #[test]
    fn a_wrong_figure_is_found() {
        let mut profile = named("v210-hd").unwrap();
        profile.bytes += 1;
        assert_eq!(profile.disagreements(), ["bytes = 5529601, and its definition gives 5529600"]);
        let mut profile = named("dnxhr-sq-uhd").unwrap();
        profile.bits_per_s = Some(500_000_000);
        assert_eq!(
            profile.disagreements(),
            ["bits_per_s = 500000000, and bytes and fps give 481689600"]
        );
        let mut profile = named("prores-hq-uhd").unwrap();
        profile.fps = None;
        assert_eq!(profile.disagreements(), ["definition 'rate' needs bits_per_s and fps"]);
    }
}
