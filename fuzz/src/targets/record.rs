//! Rows of the state: the key and the record of every table (design rule 4).
//!
//! The first two bytes are the length of the key, most significant first; then come the key, which starts with its
//! table's number, and the record.

use crate::target::{Target, Verdict};
use flotilla_engine::for_each_table;
use flotilla_engine::rows::{
    self, Table, decode_key, decode_record, decode_row, encode_key, encode_record,
};

pub(super) const TARGET: Target = Target {
    name: "record",
    summary: "rows of every table: a key has one form, a record survives the way to bytes and back",
    tokens: &[
        "\u{1}", "\0", "\0\0", "\0\u{1}", "default", "{}", "null", "wfrun-1",
    ],
    check,
};

macro_rules! tables {
    ($($table:ident)*) => {
        fn check_table(number: u8, key: &[u8], record: &[u8]) -> Verdict {
            match number {
                $(rows::$table::NUMBER => check_row::<rows::$table>(key, record),)*
                _ => Verdict::Refused,
            }
        }
    };
}

for_each_table!(tables);

fn check(input: &[u8]) -> Verdict {
    let Some((length, rest)) = input.split_first_chunk() else {
        return Verdict::Refused;
    };
    let length = usize::from(u16::from_be_bytes(*length)).min(rest.len());
    let (key, record) = rest.split_at(length);
    match key.first() {
        Some(number) => check_table(*number, key, record),
        None => Verdict::Refused,
    }
}

fn check_row<T: Table>(key: &[u8], record: &[u8]) -> Verdict {
    let is_row = decode_row::<T>(key, record).is_ok();
    let decoded_key = decode_key::<T>(key);
    let decoded_record = decode_record::<T>(record);
    assert_eq!(is_row, decoded_key.is_some() && decoded_record.is_ok());
    if let Some(decoded) = decoded_key {
        assert_eq!(
            encode_key::<T>(&decoded),
            key,
            "a key of table {} has one form",
            T::NUMBER
        );
    }
    if let Ok(decoded) = decoded_record {
        let encoded = encode_record::<T>(&decoded);
        assert!(
            encoded.len() <= record.len(),
            "what is encoded is the shortest form"
        );
        // Records cannot be compared, but their bytes can.
        let again = decode_record::<T>(&encoded).expect("just encoded");
        assert_eq!(
            encode_record::<T>(&again),
            encoded,
            "a record of table {}",
            T::NUMBER
        );
    }
    if is_row {
        Verdict::Accepted
    } else {
        Verdict::Refused
    }
}
