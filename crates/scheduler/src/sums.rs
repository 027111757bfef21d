//! Sums that are booked and taken off field by field.

/// Implements `+=` and `-=` for a type of sums by its fields. `-=` panics when more is taken off
/// than was put on: books that do not balance are a broken belief, which `$belief` names.
macro_rules! sums {
    ($sums:ident { $($field:ident),+ }, $belief:literal) => {
        impl std::ops::AddAssign for $sums {
            #[inline]
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)+
            }
        }

        impl std::ops::SubAssign for $sums {
            #[inline]
            fn sub_assign(&mut self, other: Self) {
                $(self.$field = self.$field.checked_sub(other.$field).expect($belief);)+
            }
        }
    };
}

pub(crate) use sums;
