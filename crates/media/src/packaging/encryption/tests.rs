//! Vectors of NIST SP 800-38A, the pattern of `cbcs`, and what is stated of LDUs.

use super::block::CipherLdu;
use super::*;
use crate::{Checksums, TrackDescription};
use aes::cipher::BlockCipherEncrypt;
use std::sync::Arc;
use units::Timescale;

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len() / 2).map(|i| digit(2 * i)).collect()
}

/// The key and the four blocks of plaintext of all vectors (appendix F).
const KEY: &str = "2b7e151628aed2a6abf7158809cf4f3c";
const PLAIN: &str = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51\
                     30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710";
/// F.1.1, ECB.
const ECB: &str = "3ad77bb40d7a3660a89ecaf32466ef97";
/// F.2.1, CBC with the vector 000102...0f.
const CBC: &str = "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2\
                   73bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7";

fn cipher(scheme: EncryptionScheme, is_divided: bool, vector: [u8; 16]) -> Arc<TrackCipher> {
    let key: [u8; 16] = bytes(KEY).try_into().unwrap();
    let cipher = Aes128::new(&key.into());
    Arc::new(TrackCipher { scheme, key_id: [1; 16], is_divided, cipher, vector })
}

/// What becomes of one LDU with these subsamples.
fn encrypt(cipher: &Arc<TrackCipher>, plain: &[u8], subsamples: &[Subsample]) -> Vec<u8> {
    let mut ldus = crate::LduIndex::default();
    ldus.push(u32::try_from(plain.len()).unwrap(), 1, 0, true, false);
    let description = TrackDescription::plain(TrackKind::Audio, Timescale(1));
    let data_len = ldus.data_len();
    let track = TrackIndex { description, ldus, data_len, checksums: Checksums::default() };
    let mut blocks = CipherBlock::blocks(&track, 0, 0..0, cipher);
    assert!(blocks.is_empty(), "no LDU, no block");
    let mut whole = CipherBlock::blocks(&track, 0, 0..1, cipher);
    let mut block = whole.remove(0);
    block.subsamples = subsamples.to_vec();
    let CipherLdu { at, size, vector, .. } = block.ldus.remove(0);
    block.ldus.push(CipherLdu { at, size, vector, subsamples: 0..subsamples.len() });
    blocks.push(block);
    let block = Arc::new(blocks.remove(0));
    let mut writer = CipherWriter::new(Arc::clone(&block), 0..block.len());
    let (mut rest, mut room) = (plain, vec![0; plain.len()]);
    let made = writer.write(&mut rest, &mut room);
    assert!(made == (0..plain.len()) && rest.is_empty() && writer.is_done());
    room
}

#[test]
fn sound_of_cbcs_is_cbc_as_in_sp_800_38a() {
    let vector: [u8; 16] = std::array::from_fn(|i| u8::try_from(i).unwrap());
    let cipher = cipher(EncryptionScheme::Cbcs, false, vector);
    assert_eq!(encrypt(&cipher, &bytes(PLAIN), &[]), bytes(CBC));
    // The bytes behind the last whole block stay in the clear.
    let plain = [&bytes(PLAIN)[..], b"rest"].concat();
    assert_eq!(encrypt(&cipher, &plain, &[]), [&bytes(CBC)[..], b"rest"].concat());
}

#[test]
fn video_of_cbcs_has_one_block_in_ten_and_begins_anew_in_each_subsample() {
    let vector: [u8; 16] = std::array::from_fn(|i| u8::try_from(i).unwrap());
    let cipher = cipher(EncryptionScheme::Cbcs, true, vector);
    let blocks = bytes(PLAIN);
    // In each subsample: the first block of the vectors, nine in the clear, the second one, a rest.
    let of = |first: &[u8], second: &[u8]| {
        [&b"header"[..], first, &[9; 144], second, b"behind"].concat()
    };
    let plain = of(&blocks[..16], &blocks[16..32]).repeat(2);
    let wanted = of(&bytes(CBC)[..16], &bytes(CBC)[16..32]).repeat(2);
    let subsample = Subsample { clear: 6, protected: 16 + 144 + 16 + 6 };
    assert_eq!(encrypt(&cipher, &plain, &[subsample; 2]), wanted);
}

#[test]
fn cenc_counts_blocks_through_the_subsamples_of_an_ldu() {
    let aes = Aes128::new(&<[u8; 16]>::try_from(bytes(KEY)).unwrap().into());
    let stream = |counter: &[u8; 16]| {
        let mut block = (*counter).into();
        aes.encrypt_block(&mut block);
        block.to_vec()
    };
    let first: [u8; 16] = bytes(PLAIN)[..16].try_into().unwrap();
    assert_eq!(stream(&first), bytes(ECB));
    let vector = [0xff; 16];
    let cipher = cipher(EncryptionScheme::Cenc, true, vector);
    let subsample = Subsample { clear: 3, protected: 32 };
    let made = encrypt(&cipher, &[0; 70], &[subsample; 2]);
    // Vector, then the number of the block, through all protected bytes.
    let keys = (0..4u8).map(|block| {
        let mut counter = [0xff; 16];
        counter[8..].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, block]);
        stream(&counter)
    });
    let keys: Vec<u8> = keys.flatten().collect();
    assert_eq!(made, [&[0; 3], &keys[..32], &[0; 3], &keys[32..]].concat());
}

#[test]
fn subsamples_are_stated_as_each_scheme_wants_them() {
    let found = |list: &[(u32, u32)]| -> Vec<Subsample> {
        list.iter().map(|&(clear, protected)| Subsample { clear, protected }).collect()
    };
    let stated = |scheme, list: &[(u32, u32)]| {
        let mut out = Vec::new();
        cipher(scheme, true, [0; 16]).stated(&found(list), &mut out);
        out
    };
    let (cenc, cbcs) = (EncryptionScheme::Cenc, EncryptionScheme::Cbcs);
    let two = [(5, 100), (6, 33)];
    assert_eq!(stated(cenc, &two), found(&[(9, 96), (7, 32)]));
    assert_eq!(stated(cbcs, &two), found(&[(5, 100), (6, 33)]));
    // Less than a block is not encrypted; clear bytes are joined, and divided above 16 bits.
    assert_eq!(stated(cbcs, &[(5, 15), (4, 16), (3, 0)]), found(&[(24, 16), (3, 0)]));
    let long = [(200_000, 160)];
    let parts = [(0xffff, 0), (0xffff, 0), (0xffff, 0), (200_000 - 3 * 0xffff, 160)];
    assert_eq!(stated(cenc, &long), found(&parts));
}

#[test]
fn no_key_is_shown() {
    let key: [u8; 16] = bytes(KEY).try_into().unwrap();
    let key = ContentKey { id: [1; 16], key, access: KeyAccess::Server };
    let shown = format!("{key:?} {:?}", cipher(EncryptionScheme::Cenc, true, [0; 16]));
    assert!(shown.contains("01010101-0101") && !shown.contains("2b7e") && !shown.contains("43,"));
}
