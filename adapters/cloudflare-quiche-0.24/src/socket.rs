//! A UDP socket that receives and sends many datagrams with one system call.

use std::io::{Error, ErrorKind, Result};
use std::mem::{size_of, zeroed};
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr::null;
use std::time::{Duration, Instant};

pub const DATAGRAM_BYTES: usize = 1500;
const BATCH: usize = 32;

pub struct Socket {
    pub local: SocketAddr,
    udp: UdpSocket,
    buffers: Box<[[u8; DATAGRAM_BYTES]; BATCH]>,
    can_segment: bool,
}

impl Socket {
    pub fn new(udp: UdpSocket) -> Result<Socket> {
        let local = udp.local_addr()?;
        Ok(Socket { local, udp, buffers: Box::new([[0; DATAGRAM_BYTES]; BATCH]), can_segment: true })
    }

    /// Waits until a datagram is there (true) or the deadline has come.
    pub fn wait(&self, deadline: Option<Instant>) -> Result<bool> {
        let mut readable = libc::pollfd { fd: self.udp.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let left = deadline.map(|deadline| timespec(deadline.saturating_duration_since(Instant::now())));
        let left = left.as_ref().map_or(null(), |left| left as *const libc::timespec);
        match unsafe { libc::ppoll(&mut readable, 1, left, null()) } {
            -1 if Error::last_os_error().kind() == ErrorKind::Interrupted => Ok(false),
            -1 => Err(Error::last_os_error()),
            count => Ok(count > 0),
        }
    }

    /// The datagrams that are there, up to a batch of them; more wait for the next call.
    pub fn receive(&mut self) -> Result<Vec<(&mut [u8], SocketAddr)>> {
        // Plain C structures, for which all zeros is a value.
        let mut places: [libc::iovec; BATCH] = unsafe { zeroed() };
        let mut from: [libc::sockaddr_in; BATCH] = unsafe { zeroed() };
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
        for (i, buffer) in self.buffers.iter_mut().enumerate() {
            places[i] = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            messages[i].msg_hdr.msg_iov = &mut places[i];
            messages[i].msg_hdr.msg_iovlen = 1;
            messages[i].msg_hdr.msg_name = (&mut from[i] as *mut libc::sockaddr_in).cast();
            messages[i].msg_hdr.msg_namelen = size_of::<libc::sockaddr_in>() as u32;
        }
        let (list, count, now) = (messages.as_mut_ptr(), BATCH as u32, libc::MSG_DONTWAIT);
        let count = match unsafe { libc::recvmmsg(self.udp.as_raw_fd(), list, count, now, std::ptr::null_mut()) } {
            -1 if Error::last_os_error().kind() == ErrorKind::WouldBlock => 0,
            -1 => return Err(Error::last_os_error()),
            count => count as usize,
        };
        let lengths = messages.iter().map(|message| message.msg_len as usize);
        let received = self.buffers.iter_mut().zip(lengths).zip(&from).take(count);
        Ok(received.map(|((buffer, length), from)| (&mut buffer[..length], address(from))).collect())
    }

    /// Sends datagrams of `size` bytes, the last may be shorter: in one call, which the kernel cuts up (UDP GSO).
    pub fn send(&mut self, bytes: &[u8], size: usize, to: SocketAddr) -> Result<()> {
        if bytes.len() <= size || self.can_segment {
            match self.send_segmented(bytes, size, to) {
                // An interface without checksum offload cannot.
                Err(error) if error.raw_os_error() == Some(libc::EIO) => self.can_segment = false,
                done => return done,
            }
        }
        bytes.chunks(size).try_for_each(|datagram| self.udp.send_to(datagram, to).map(|_| ()))
    }

    fn send_segmented(&self, bytes: &[u8], size: usize, to: SocketAddr) -> Result<()> {
        let SocketAddr::V4(to) = to else { return Err(ErrorKind::Unsupported.into()) };
        let mut to = socket_address(to);
        let mut place = libc::iovec { iov_base: bytes.as_ptr() as *mut _, iov_len: bytes.len() };
        let mut control = [0u64; 3]; // CMSG_SPACE of a u16, aligned
        let mut message: libc::msghdr = unsafe { zeroed() };
        message.msg_name = (&mut to as *mut libc::sockaddr_in).cast();
        message.msg_namelen = size_of::<libc::sockaddr_in>() as u32;
        message.msg_iov = &mut place;
        message.msg_iovlen = 1;
        if bytes.len() > size {
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = size_of_val(&control);
            unsafe {
                let header = libc::CMSG_FIRSTHDR(&message);
                (*header).cmsg_level = libc::SOL_UDP;
                (*header).cmsg_type = libc::UDP_SEGMENT;
                (*header).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as usize;
                libc::CMSG_DATA(header).cast::<u16>().write_unaligned(size as u16);
            }
        }
        match unsafe { libc::sendmsg(self.udp.as_raw_fd(), &message, 0) } {
            -1 => Err(Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

fn timespec(time: Duration) -> libc::timespec {
    libc::timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() }
}

fn address(from: &libc::sockaddr_in) -> SocketAddr {
    SocketAddrV4::new(u32::from_be(from.sin_addr.s_addr).into(), u16::from_be(from.sin_port)).into()
}

fn socket_address(to: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: to.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*to.ip()).to_be() },
        sin_zero: [0; 8],
    }
}
