//! Variable-length integers: seven bits per byte; the last byte has no high bit (LEB128).

/// Writes numbers.
#[derive(Debug, Default)]
pub struct VarintWriter(pub Vec<u8>);

impl VarintWriter {
    /// Writes a number.
    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.0.push((number & 0x7f) as u8);
    }

    /// Writes bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

/// Reads what a [`VarintWriter`] wrote. Damaged bytes end early and are never an error.
#[derive(Clone, Debug)]
pub struct VarintReader<'a> {
    bytes: &'a [u8],
}

impl<'a> VarintReader<'a> {
    /// Returns a reader of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Reads a number; `None` at the end.
    pub fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        let mut shift = 0;
        loop {
            let (&byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
            shift += 7;
            if shift > 63 {
                return None;
            }
        }
    }

    /// Reads `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(bytes)
    }

    /// Reads the number of a file and the packed positions of a word in it.
    pub fn next_file(&mut self) -> Option<(i64, &'a [u8])> {
        let file = i64::try_from(self.number()?).ok()?;
        let count = usize::try_from(self.number()?).ok()?;
        Some((file, self.bytes(count)?))
    }
}

/// Appends the number of a file and the packed positions of a word in it.
pub(super) fn push_file(to: &mut Vec<u8>, file: i64, positions: &[u8]) {
    let mut writer = VarintWriter(std::mem::take(to));
    writer.number(file.unsigned_abs());
    writer.number(positions.len() as u64);
    writer.bytes(positions);
    *to = writer.0;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_files_round_trip() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        let mut writer = VarintWriter::default();
        for it in numbers {
            writer.number(it);
        }
        let mut reader = VarintReader::new(&writer.0);
        assert_eq!(numbers.map(|_| reader.number().unwrap()), numbers);
        assert_eq!(reader.number(), None);
        // Incomplete bytes end early.
        assert_eq!(VarintReader::new(&[0x80, 0x80]).number(), None);
        assert_eq!(VarintReader::new(&[0xff; 20]).number(), None);
        let mut all = Vec::new();
        push_file(&mut all, 7, b"abc");
        push_file(&mut all, 300, b"");
        let mut reader = VarintReader::new(&all);
        assert_eq!(reader.next_file(), Some((7, &b"abc"[..])));
        assert_eq!(reader.next_file(), Some((300, &b""[..])));
        assert_eq!(reader.next_file(), None);
    }
}
