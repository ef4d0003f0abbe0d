//! Messages over unix sockets that keep their borders (`SOCK_SEQPACKET`, `unix(7)`): one is sent whole or
//! not at all, so no end ever waits in the middle of one.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// The longest message. Most spawns fit; the buffer for one is a part of each process's stack.
pub(super) const LONGEST: usize = 8 * 1024;

/// The most descriptors of one message.
const MOST_DESCRIPTORS: usize = 8;

/// What came over a socket.
#[derive(Debug)]
pub(super) enum Received {
    /// A message and the descriptors that came with it.
    Message(Vec<u8>, Vec<OwnedFd>),
    /// Nothing, on a socket that doesn't block.
    Nothing,
    /// The other end is closed.
    Closed,
}

/// Two ends that don't block, closed on exec.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

/// Sends one message with descriptors. Like all sends here it raises no `SIGPIPE`.
pub(super) fn send(socket: impl AsFd, message: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        let fits = ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
        assert!(fits, "there is space for {MOST_DESCRIPTORS} descriptors");
    }
    rustix::io::retry_on_intr(|| sendmsg(&socket, &[IoSlice::new(message)], &mut ancillary, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// Takes one message.
pub(super) fn receive(socket: impl AsFd) -> io::Result<Received> {
    let mut bytes = [0; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)
    });
    let received = match received {
        Ok(received) => received,
        Err(rustix::io::Errno::AGAIN) => return Ok(Received::Nothing),
        // The other end was closed with something unread: what it had to say has been said.
        Err(rustix::io::Errno::CONNRESET) => return Ok(Received::Closed),
        Err(error) => return Err(error.into()),
    };
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    if received.bytes == 0 {
        return Ok(Received::Closed);
    }
    if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message was cut"));
    }
    Ok(Received::Message(bytes[..received.bytes].to_vec(), descriptors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_their_borders_and_carry_descriptors() {
        let (ours, theirs) = pair().unwrap();
        assert!(matches!(receive(&theirs).unwrap(), Received::Nothing));
        send(&ours, b"one", &[]).unwrap();
        send(&ours, b"two", &[ours.as_fd(), theirs.as_fd()]).unwrap();
        let Received::Message(bytes, descriptors) = receive(&theirs).unwrap() else { panic!("it was sent") };
        assert_eq!((bytes.as_slice(), descriptors.len()), (b"one".as_slice(), 0));
        let Received::Message(bytes, descriptors) = receive(&theirs).unwrap() else { panic!("it was sent") };
        assert_eq!((bytes.as_slice(), descriptors.len()), (b"two".as_slice(), 2));
        drop((ours, descriptors));
        assert!(matches!(receive(&theirs).unwrap(), Received::Closed));
        assert_eq!(send(&theirs, b"late", &[]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
