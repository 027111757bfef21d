//! Lists that grow as they are used.

/// The element of `list` at `index`; a list that is too short is extended by default values.
pub fn grown<T: Clone + Default>(list: &mut Vec<T>, index: usize) -> &mut T {
    if list.len() <= index {
        list.resize(index + 1, T::default());
    }
    &mut list[index]
}
