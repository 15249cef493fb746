//! The bytes of a clock's updates for one shard: written once by the client, kept as they are by wire, log and state.
//!
//! ```text
//! part      version u8 = 1 | 0 u8 | sections u16 | 0 u32 | section header × sections | section body × sections
//! header    table u32 | value type u8 | operation u8 | 0 u16 | rows u32 | first column u32 | columns u32 | 0 u32
//! body      row id u64 × rows | value × (rows × columns), row by row
//! ```
//! All little endian. Operation 1 is `inc`; 2 (put) and 3 (delete) are reserved (P9). A row longer than a part is cut
//! by column range.

use crate::{RowId, TableId, ValueType};
use bytes::{BufMut, Bytes, BytesMut};

/// The first byte of a part.
pub const VERSION: u8 = 1;
/// Bytes before the first section header.
pub const HEADER_BYTES: usize = 8;
/// Bytes of a section header.
pub const SECTION_HEADER_BYTES: usize = 24;
const INC: u8 = 1;

/// Why bytes are no part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The version byte is another one.
    #[error("a part of version {0}; expected {VERSION}")]
    Version(u8),
    /// A reserved field is set, or an operation or type is unknown.
    #[error("section {section}: {field} {got} is unknown to this version")]
    Unknown {
        /// Which section, from 0.
        section: u16,
        /// Which field.
        field: &'static str,
        /// Its value.
        got: u32,
    },
    /// Lengths do not add up.
    #[error("a part of {got} bytes; its headers describe {expected}")]
    Length {
        /// As the headers say.
        expected: u64,
        /// As it is.
        got: u64,
    },
    /// A section without rows or columns.
    #[error("section {0} is empty")]
    EmptySection(u16),
}

/// Updates of one table and one column range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// The table.
    pub table: TableId,
    /// Type of the values.
    pub value_type: ValueType,
    /// The first column.
    pub first_column: u32,
    /// Columns of each row, at least 1.
    pub columns: u32,
    row_ids: &'a [u8],
    values: &'a [u8],
}

impl<'a> Section<'a> {
    /// How many rows, at least 1.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.row_ids.len() / 8
    }

    /// Each row with the little-endian bytes of its values.
    pub fn iter(&self) -> impl Iterator<Item = (RowId, &'a [u8])> + use<'a> {
        let row_bytes = self.columns as usize * self.value_type.bytes();
        let (ids, _) = self.row_ids.as_chunks::<8>();
        ids.iter().map(|id| RowId(u64::from_le_bytes(*id))).zip(self.values.chunks_exact(row_bytes))
    }
}

/// What a writer gives for one section; the same shape as [`Section`].
#[derive(Clone, Debug)]
pub struct SectionData<'a> {
    /// The table.
    pub table: TableId,
    /// Type of the values.
    pub value_type: ValueType,
    /// The first column.
    pub first_column: u32,
    /// Columns of each row.
    pub columns: u32,
    /// Row ids and, each of `columns` values, their little-endian bytes.
    pub rows: Vec<(RowId, &'a [u8])>,
}

impl SectionData<'_> {
    /// Bytes this section takes in a part, its header included.
    #[must_use]
    pub fn encoded_bytes(&self) -> usize {
        SECTION_HEADER_BYTES + self.rows.len() * (8 + self.columns as usize * self.value_type.bytes())
    }
}

/// Writes a part.
///
/// # Panics
/// If a row's bytes do not match `columns`, or a count passes its field: the caller cuts parts far below that.
#[must_use]
pub fn encode(sections: &[SectionData<'_>]) -> Bytes {
    let total = HEADER_BYTES + sections.iter().map(SectionData::encoded_bytes).sum::<usize>();
    let mut out = BytesMut::with_capacity(total);
    out.put_u8(VERSION);
    out.put_u8(0);
    out.put_u16_le(u16::try_from(sections.len()).expect("a part has fewer than 65,536 sections"));
    out.put_u32_le(0);
    for section in sections {
        out.put_u32_le(section.table.0);
        out.put_u8(section.value_type as u8);
        out.put_u8(INC);
        out.put_u16_le(0);
        out.put_u32_le(u32::try_from(section.rows.len()).expect("a part has fewer than 2^32 rows"));
        out.put_u32_le(section.first_column);
        out.put_u32_le(section.columns);
        out.put_u32_le(0);
    }
    for section in sections {
        section.rows.iter().for_each(|(row, _)| out.put_u64_le(row.0));
        for (_, values) in &section.rows {
            assert_eq!(
                values.len(),
                section.columns as usize * section.value_type.bytes(),
                "a row of its section's width"
            );
            out.put_slice(values);
        }
    }
    debug_assert_eq!(out.len(), total);
    out.freeze()
}

/// A part whose lengths have been checked.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    bytes: &'a [u8],
    sections: u16,
}

impl<'a> Part<'a> {
    /// Checks every length and field. Whether tables, columns and values are right is for the shard to say.
    ///
    /// # Errors
    /// [`Malformed`]; never panics and allocates nothing, whatever the bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let short = |expected: usize| Malformed::Length { expected: expected as u64, got: bytes.len() as u64 };
        let head: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or_else(|| short(HEADER_BYTES))?;
        if head[0] != VERSION {
            return Err(Malformed::Version(head[0]));
        }
        let sections = u16::from_le_bytes([head[2], head[3]]);
        let headers_end = HEADER_BYTES + usize::from(sections) * SECTION_HEADER_BYTES;
        if bytes.len() < headers_end {
            return Err(short(headers_end));
        }
        let mut expected = headers_end as u64;
        for section in 0..sections {
            let header = Header::read(bytes, section);
            header.check(section)?;
            expected = expected.saturating_add(header.body_bytes());
        }
        if expected != bytes.len() as u64 {
            return Err(Malformed::Length { expected, got: bytes.len() as u64 });
        }
        Ok(Self { bytes, sections })
    }

    /// The sections in order.
    pub fn sections(&self) -> impl Iterator<Item = Section<'a>> + use<'a> {
        let (bytes, sections) = (self.bytes, self.sections);
        let mut at = HEADER_BYTES + usize::from(sections) * SECTION_HEADER_BYTES;
        (0..sections).map(move |section| {
            let header = Header::read(bytes, section);
            let ids_end = at + header.rows as usize * 8;
            let end = at + usize::try_from(header.body_bytes()).expect("checked against the part's length");
            let section = Section {
                table: TableId(header.table),
                value_type: ValueType::from_byte(header.value_type).expect("checked by parse"),
                first_column: header.first_column,
                columns: header.columns,
                row_ids: &bytes[at..ids_end],
                values: &bytes[ids_end..end],
            };
            at = end;
            section
        })
    }
}

struct Header {
    table: u32,
    value_type: u8,
    operation: u8,
    rows: u32,
    first_column: u32,
    columns: u32,
    reserved: u32,
}

impl Header {
    fn read(bytes: &[u8], section: u16) -> Self {
        let at = HEADER_BYTES + usize::from(section) * SECTION_HEADER_BYTES;
        let h: &[u8; SECTION_HEADER_BYTES] = bytes[at..].first_chunk().expect("headers lie within the part");
        let word = |i: usize| u32::from_le_bytes([h[i], h[i + 1], h[i + 2], h[i + 3]]);
        Self {
            table: word(0),
            value_type: h[4],
            operation: h[5],
            rows: word(8),
            first_column: word(12),
            columns: word(16),
            reserved: u32::from(u16::from_le_bytes([h[6], h[7]])) | word(20),
        }
    }

    fn check(&self, section: u16) -> Result<(), Malformed> {
        let unknown = |field, got| Err(Malformed::Unknown { section, field, got });
        if ValueType::from_byte(self.value_type).is_none() {
            return unknown("value type", u32::from(self.value_type));
        }
        if self.operation != INC {
            return unknown("operation", u32::from(self.operation));
        }
        if self.reserved != 0 {
            return unknown("reserved field", self.reserved);
        }
        if self.rows == 0 || self.columns == 0 {
            return Err(Malformed::EmptySection(section));
        }
        Ok(())
    }

    fn body_bytes(&self) -> u64 {
        let value = ValueType::from_byte(self.value_type).map_or(0, |t| t.bytes() as u64);
        u64::from(self.rows).saturating_mul(8 + u64::from(self.columns) * value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn example() -> Bytes {
        let one: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        let two: Vec<u8> = 7i64.to_le_bytes().to_vec();
        encode(&[
            SectionData {
                table: TableId(3),
                value_type: ValueType::F32,
                first_column: 4,
                columns: 2,
                rows: vec![(RowId(10), &one), (RowId(11), &one)],
            },
            SectionData {
                table: TableId(9),
                value_type: ValueType::I64,
                first_column: 0,
                columns: 1,
                rows: vec![(RowId(1), &two)],
            },
        ])
    }

    #[test]
    fn golden_bytes() {
        let hex: String = example().iter().map(|b| format!("{b:02x}")).collect();
        let expected = concat!(
            "0100020000000000",
            "03000000",
            "01",
            "01",
            "0000",
            "02000000",
            "04000000",
            "02000000",
            "00000000",
            "09000000",
            "02",
            "01",
            "0000",
            "01000000",
            "00000000",
            "01000000",
            "00000000",
            "0a00000000000000",
            "0b00000000000000",
            "0000c03f",
            "000000c0",
            "0000c03f",
            "000000c0",
            "0100000000000000",
            "0700000000000000",
        );
        assert_eq!(hex, expected);
    }

    #[test]
    fn reads_back() {
        let bytes = example();
        let sections: Vec<_> = Part::parse(&bytes).unwrap().sections().collect();
        assert_eq!((sections[0].table, sections[0].first_column, sections[0].rows()), (TableId(3), 4, 2));
        let (row, values) = sections[1].iter().next().unwrap();
        assert_eq!((row, values), (RowId(1), 7i64.to_le_bytes().as_slice()));
    }

    #[test]
    fn every_cut_is_refused() {
        let bytes = example();
        for end in 0..bytes.len() {
            assert!(Part::parse(&bytes[..end]).is_err(), "{end} bytes");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(part) = Part::parse(&bytes) {
                part.sections().for_each(|s| { s.iter().count(); });
            }
        }

        #[test]
        fn a_flipped_byte_never_panics(at in 0usize..160, with in any::<u8>()) {
            let mut bytes = example().to_vec();
            let at = at % bytes.len();
            bytes[at] = with;
            if let Ok(part) = Part::parse(&bytes) {
                part.sections().for_each(|s| { s.iter().count(); });
            }
        }
    }
}
