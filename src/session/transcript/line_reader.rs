//! Reads lines of bounded length one at a time, so that a file of any size can be read.

use std::io::{self, BufRead, Read as _};

/// A longer line is skipped. An image in a message may take some megabytes; nothing takes more.
pub const LINE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The lines of a stream.
#[derive(Debug)]
pub struct BoundedLines<R> {
    input: R,
    buffer: Vec<u8>,
    number: usize,
}

/// One line.
#[derive(Debug)]
pub enum BoundedLine<'a> {
    /// A line without its line end.
    Text {
        /// The bytes.
        bytes: &'a [u8],
        /// Whether it has a line end; the last line may still be written.
        is_complete: bool,
    },
    /// It is longer than [`LINE_BYTES_MAX`].
    TooLong,
}

impl<R: BufRead> BoundedLines<R> {
    /// Returns a reader at the start of a stream.
    pub fn new(input: R) -> Self {
        Self { input, buffer: Vec::new(), number: 0 }
    }

    /// Returns the number of the last line returned, from 1.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Reads the next line; `None` at the end.
    ///
    /// # Errors
    ///
    /// Returns why the stream cannot be read.
    pub fn next_line(&mut self) -> io::Result<Option<BoundedLine<'_>>> {
        self.buffer.clear();
        let limit = LINE_BYTES_MAX as u64 + 1;
        let read = self.input.by_ref().take(limit).read_until(b'\n', &mut self.buffer)?;
        self.number += 1;
        if read == 0 {
            return Ok(None);
        }
        let is_whole = self.buffer.ends_with(b"\n");
        if !is_whole && read > LINE_BYTES_MAX {
            self.buffer = Vec::new();
            copy_rest(&mut self.input, &mut io::sink())?;
            return Ok(Some(BoundedLine::TooLong));
        }
        let end = self.buffer.len() - usize::from(is_whole);
        let bytes = &self.buffer[..end];
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        // Some editors and shells start a file with a byte order mark.
        let mark = "\u{feff}".as_bytes();
        let bytes =
            if self.number == 1 { bytes.strip_prefix(mark).unwrap_or(bytes) } else { bytes };
        Ok(Some(BoundedLine::Text { bytes, is_complete: is_whole }))
    }
}

/// Reads a line with its line end into `buffer`, or the start of a line that is too long. Returns
/// whether it is the whole line. Nothing is read at the end of the stream.
///
/// # Errors
///
/// Returns why the stream cannot be read.
pub fn read_raw(input: &mut impl BufRead, buffer: &mut Vec<u8>) -> io::Result<bool> {
    buffer.clear();
    let read = input.take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', buffer)?;
    Ok(buffer.ends_with(b"\n") || read <= LINE_BYTES_MAX)
}

/// Copies the rest of a line whose start was read; returns its bytes.
///
/// # Errors
///
/// Returns why the stream cannot be read or written.
pub fn copy_rest(input: &mut impl BufRead, output: &mut impl io::Write) -> io::Result<u64> {
    let mut copied = 0;
    loop {
        let available = match input.fill_buf() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            available => available?,
        };
        let end = available.iter().position(|it| *it == b'\n');
        let used = end.map_or(available.len(), |it| it + 1);
        output.write_all(&available[..used])?;
        copied += used as u64;
        input.consume(used);
        if end.is_some() || used == 0 {
            return Ok(copied);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_skipped() {
        let mut bytes = b"{}\n".to_vec();
        bytes.extend(vec![b'a'; LINE_BYTES_MAX + 70_000]);
        bytes.extend(b"\n[1]\r\nhalf");
        let mut lines = BoundedLines::new(&bytes[..]);
        let mut seen = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            seen.push(match line {
                BoundedLine::TooLong => "too long".to_owned(),
                BoundedLine::Text { bytes, is_complete: is_whole } => {
                    format!("{} {is_whole}", String::from_utf8_lossy(bytes))
                }
            });
        }
        assert_eq!(seen, ["{} true", "too long", "[1] true", "half false"]);
    }
}
