//! Compact vectors, and their similarity. Pure.
//!
//! Each number is stored as its sign, with which all vectors are searched, and as a byte, with which
//! the best are sorted. Eight bits per number change the cosine by about 0.01.

use crate::store::db::vectors::PackedVector;

/// The largest signed byte.
const CODE_MAX: f32 = 127.0;

/// Packs a vector.
pub(super) fn quantize(vector: &[f32]) -> PackedVector {
    let unit = normalize(vector);
    let largest = unit.iter().fold(0.0_f32, |most, it| most.max(it.abs()));
    let scale = if largest > 0.0 { largest / CODE_MAX } else { 1.0 };
    let mut code = scale.to_le_bytes().to_vec();
    #[expect(clippy::cast_possible_truncation, reason = "between -127 and 127")]
    code.extend(unit.iter().flat_map(|it| ((it / scale).round() as i8).to_le_bytes()));
    PackedVector { signs: sign_bits(&unit), code }
}

/// Returns the vector of length 1 in the same direction.
pub(super) fn normalize(vector: &[f32]) -> Vec<f32> {
    let length = vector.iter().map(|it| it * it).sum::<f32>().sqrt();
    let length = if length > 0.0 { length } else { 1.0 };
    vector.iter().map(|it| it / length).collect()
}

/// Returns a bit per number: whether it is positive.
pub(super) fn sign_bits(vector: &[f32]) -> Vec<u8> {
    let byte =
        |of: &[f32]| of.iter().enumerate().fold(0, |all, (at, it)| all | u8::from(*it > 0.0) << at);
    vector.chunks(8).map(byte).collect()
}

/// Returns how many signs differ (the Hamming distance).
pub(super) fn hamming_distance(a: &[u8], b: &[u8]) -> u32 {
    let (words, rest) = a.as_chunks::<8>();
    let (others, other_rest) = b.as_chunks::<8>();
    let of_words = words
        .iter()
        .zip(others)
        .map(|(a, b)| (u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b)).count_ones());
    let of_rest = rest.iter().zip(other_rest).map(|(a, b)| (a ^ b).count_ones());
    of_words.sum::<u32>() + of_rest.sum::<u32>()
}

/// Returns the cosine of a packed vector and one of length 1; `None` if their dimensions differ.
pub(super) fn cosine(code: &[u8], unit: &[f32]) -> Option<f32> {
    let (scale, code) = code.split_first_chunk::<4>()?;
    if code.len() != unit.len() {
        return None;
    }
    let products = code.iter().zip(unit).map(|(a, b)| f32::from(a.cast_signed()) * b);
    Some(products.sum::<f32>() * f32::from_le_bytes(*scale))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_packed_is_about_as_near_as_before(
            a in prop::collection::vec(-1.0_f32..1.0, 24),
            b in prop::collection::vec(-1.0_f32..1.0, 24),
        ) {
            let (of_a, of_b) = (normalize(&a), normalize(&b));
            let exact: f32 = of_a.iter().zip(&of_b).map(|(a, b)| a * b).sum();
            let found = cosine(&quantize(&a).code, &of_b).unwrap();
            prop_assert!((exact - found).abs() < 0.02, "{exact} {found}");
        }
    }

    #[test]
    fn signs_separate_opposites() {
        let all: Vec<f32> = (0_i8..20).map(|it| f32::from(it) - 9.5).collect();
        let turned: Vec<f32> = all.iter().map(|it| -it).collect();
        assert_eq!(hamming_distance(&sign_bits(&all), &sign_bits(&all)), 0);
        assert_eq!(hamming_distance(&sign_bits(&all), &sign_bits(&turned)), 20);
        assert_eq!(cosine(&quantize(&all).code, &[1.0]), None);
        assert_eq!(quantize(&[0.0, 0.0]).signs, [0]);
    }
}
