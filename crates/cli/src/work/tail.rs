//! The end of what a program prints: bytes in as they come, text out, never more than was asked for.

/// The last bytes of a stream.
#[derive(Debug)]
pub(crate) struct Tail {
    most: usize,
    /// At most twice `most`, so that bytes are moved seldom.
    bytes: Vec<u8>,
    /// Something came before them.
    is_cut: bool,
}

impl Tail {
    /// Of nothing yet.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, bytes: Vec::new(), is_cut: false }
    }

    /// More came.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let new = &bytes[bytes.len().saturating_sub(self.most)..];
        if self.bytes.len() + new.len() > 2 * self.most {
            let old = self.bytes.len().saturating_sub(self.most);
            self.bytes.drain(..old);
        }
        self.bytes.extend_from_slice(new);
        self.is_cut |= new.len() < bytes.len() || self.bytes.len() > self.most;
    }

    /// As text of at most so many bytes: what is no UTF-8 is shown as such, control characters but line feeds and tabs are
    /// dropped.
    pub(crate) fn text(&self) -> String {
        let kept = &self.bytes[self.bytes.len().saturating_sub(self.most)..];
        // What was cut in front may have been the beginning of a character, which has three more bytes at most.
        let is_rest = |byte: &&u8| self.is_cut && **byte & 0xc0 == 0x80;
        let rest = kept.iter().take(3).take_while(is_rest).count();
        let text = String::from_utf8_lossy(&kept[rest..]);
        let mut text: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
        // A replacement character is longer than what it stands for.
        let more = text.ceil_char_boundary(text.len().saturating_sub(self.most));
        text.drain(..more);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(most: usize, pieces: &[&[u8]], expect: &str) {
        let mut tail = Tail::new(most);
        pieces.iter().for_each(|piece| tail.push(piece));
        assert_eq!(tail.text(), expect, "{pieces:?}");
        assert!(tail.bytes.len() <= 2 * most);
    }

    #[test]
    fn the_end_is_kept_however_it_comes() {
        check(4, &[], "");
        check(4, &[b"abcd"], "abcd");
        check(4, &[b"abcdefgh"], "efgh");
        check(4, &[b"ab", b"cd", b"ef", b"g"], "defg");
        check(4, &[b"abcdefg", b"h"], "efgh");
        check(4, &[b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"h", b"i", b"j"], "ghij");
        check(0, &[b"abc"], "");
    }

    #[test]
    fn a_character_is_kept_whole_or_not_at_all() {
        check(3, &["aäö".as_bytes()], "ö");
        check(4, &["aäö".as_bytes()], "äö");
        check(3, &["€".as_bytes()], "€");
        check(2, &["€".as_bytes()], "");
        check(5, &[b"x\xe2\x82", b"\xac!!"], "€!!");
    }

    #[test]
    fn what_is_no_text_is_shown_as_such_within_the_bound() {
        check(9, &[b"a\xffb"], "a\u{fffd}b");
        check(4, &[b"\xff\xff\xff\xff"], "\u{fffd}");
        check(10, &[b"a\0b\x1bc\r\n\td\x7f"], "abc\n\td");
        check(8, &[b"\x80\x80ab"], "\u{fffd}\u{fffd}ab");
    }

    #[test]
    fn any_bytes_make_a_text_within_the_bound() {
        let bytes: Vec<u8> = (0..4_096_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for most in [1, 7, 64, 1_000] {
            for piece in [1, 3, 100] {
                let mut tail = Tail::new(most);
                bytes.chunks(piece).for_each(|piece| tail.push(piece));
                assert!(tail.text().len() <= most, "{most} {piece}");
            }
        }
    }
}
