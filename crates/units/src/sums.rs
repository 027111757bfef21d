//! Sums of figures that many hands counted.

/// Adds fields of one value to the same fields of another: `add_fields!(all, more; reads, bytes)`.
#[macro_export]
macro_rules! add_fields {
    ($all:expr, $more:expr; $($field:ident),+) => {{
        $($all.$field += $more.$field;)+
    }};
}
