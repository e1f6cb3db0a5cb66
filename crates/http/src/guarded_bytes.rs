//! Bytes with a guard: what is held for them (a share of a budget, a place of an API key) is given back when
//! the last clone of the [`Bytes`](bytes::Bytes) made of them is dropped, wherever they have gone by then.

/// Bytes of an answer with what is held until the last of them was written.
pub(crate) struct GuardedBytes<T, H> {
    pub(crate) bytes: T,
    #[expect(dead_code, reason = "given back when it is dropped")]
    pub(crate) held: H,
}

impl<T: AsRef<[u8]>, H> AsRef<[u8]> for GuardedBytes<T, H> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}
