//! A UDP socket that moves many datagrams with one system call, which is what costs in virtual time. IPv4 only.

use std::io::{Error, ErrorKind};
use std::mem::{size_of, zeroed};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use libc::{iovec, mmsghdr, sockaddr_in};
use tquic::{PacketInfo, PacketSendHandler};

/// The longest datagram that can be received, and what the peer is told of that.
pub const DATAGRAM_BYTES: usize = 1500;
const BATCH: usize = 64;

pub struct Socket {
    udp: UdpSocket,
    local: SocketAddr,
}

impl Socket {
    pub fn bind(address: SocketAddr) -> Result<Self, String> {
        let bound = UdpSocket::bind(address).and_then(|udp| Ok((udp.local_addr()?, udp)));
        let (local, udp) = bound.map_err(|e| format!("cannot bind {address}: {e}"))?;
        Ok(Self { udp, local })
    }

    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Wait for a datagram, or until `timeout` is over, in the whole milliseconds that tquic's timers count in.
    /// Returns whether there is one.
    pub fn wait(&self, timeout: Option<Duration>) -> bool {
        let timeout_ms = timeout.map_or(-1, |t| t.as_nanos().div_ceil(1_000_000) as i32);
        let mut readable = libc::pollfd { fd: self.udp.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        unsafe { libc::poll(&mut readable, 1, timeout_ms) > 0 }
    }

    /// Hand the datagrams that are there, up to a batch of them, to `take`.
    pub fn receive(&self, mut take: impl FnMut(&mut [u8], PacketInfo)) -> Result<(), String> {
        let mut buffers = [[0u8; DATAGRAM_BYTES]; BATCH];
        let mut senders: [sockaddr_in; BATCH] = unsafe { zeroed() };
        let mut places = buffers.each_mut().map(|buffer| place(buffer.as_mut_ptr(), buffer.len()));
        let mut messages: Vec<mmsghdr> =
            places.iter_mut().zip(&mut senders).map(|(place, sender)| message(place, sender)).collect();
        let (fd, first) = (self.udp.as_raw_fd(), messages.as_mut_ptr());
        let count = unsafe { libc::recvmmsg(fd, first, BATCH as u32, libc::MSG_DONTWAIT, null_mut()) };
        if count < 0 {
            let error = Error::last_os_error();
            let is_empty = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
            return if is_empty { Ok(()) } else { Err(format!("cannot receive: {error}")) };
        }
        let time = Instant::now();
        for i in 0..count as usize {
            let info = PacketInfo { src: from_c(&senders[i]), dst: self.local, time };
            take(&mut buffers[i][..messages[i].msg_len as usize], info);
        }
        Ok(())
    }
}

impl PacketSendHandler for Socket {
    /// The socket blocks, so that nothing is left unsent.
    fn on_packets_send(&self, packets: &[(Vec<u8>, PacketInfo)]) -> tquic::Result<usize> {
        let mut receivers: Vec<sockaddr_in> = packets.iter().map(|(_, info)| to_c(info.dst)).collect();
        let mut places: Vec<iovec> =
            packets.iter().map(|(bytes, _)| place(bytes.as_ptr().cast_mut(), bytes.len())).collect();
        let mut messages: Vec<mmsghdr> =
            places.iter_mut().zip(&mut receivers).map(|(place, receiver)| message(place, receiver)).collect();
        let count = messages.len() as u32;
        let sent = unsafe { libc::sendmmsg(self.udp.as_raw_fd(), messages.as_mut_ptr(), count, 0) };
        if sent >= 0 {
            return Ok(sent as usize);
        }
        match Error::last_os_error().raw_os_error() {
            // What the system has no room for is lost, as on any link.
            Some(libc::EMSGSIZE | libc::ENOBUFS) => Ok(1),
            Some(libc::EINTR) => Ok(0),
            _ => Err(Error::last_os_error().into()),
        }
    }
}

fn place(bytes: *mut u8, length: usize) -> iovec {
    iovec { iov_base: bytes.cast(), iov_len: length }
}

fn message(place: &mut iovec, peer: &mut sockaddr_in) -> mmsghdr {
    let mut message: mmsghdr = unsafe { zeroed() };
    message.msg_hdr.msg_name = (peer as *mut sockaddr_in).cast();
    message.msg_hdr.msg_namelen = size_of::<sockaddr_in>() as u32;
    message.msg_hdr.msg_iov = place;
    message.msg_hdr.msg_iovlen = 1;
    message
}

fn to_c(address: SocketAddr) -> sockaddr_in {
    let SocketAddr::V4(address) = address else { unreachable!("the socket is an IPv4 one") };
    let mut result: sockaddr_in = unsafe { zeroed() };
    result.sin_family = libc::AF_INET as u16;
    result.sin_port = address.port().to_be();
    result.sin_addr.s_addr = u32::from(*address.ip()).to_be();
    result
}

fn from_c(address: &sockaddr_in) -> SocketAddr {
    let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
    SocketAddrV4::new(ip, u16::from_be(address.sin_port)).into()
}
