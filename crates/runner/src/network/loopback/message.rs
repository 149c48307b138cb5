//! Addresses of an interface → messages to the kernel and back (rtnetlink(7), netlink(7)).

use std::net::Ipv4Addr;

const NEW_ADDRESS: u16 = 20;
const DELETE_ADDRESS: u16 = 21;
const GET_ADDRESSES: u16 = 22;
const ERROR: u16 = 2;
const DONE: u16 = 3;

const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
const DUMP: u16 = 0x300;
const CREATE_ONLY: u16 = 0x600;

const ATTRIBUTE_ADDRESS: u16 = 1;
const ATTRIBUTE_LOCAL: u16 = 2;
const ATTRIBUTE_LABEL: u16 = 3;

const INET: u8 = 2;
/// An address that is of use on this machine only.
const HOST_SCOPE: u8 = 254;
const WHOLE_ADDRESS: u8 = 32;
const HEAD: usize = 16;
const ADDRESS_HEAD: usize = 8;

/// An address of an interface, with the label that it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledAddress {
    /// The address.
    pub address: Ipv4Addr,
    /// The label.
    pub label: String,
}

/// What the kernel answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelAnswer {
    /// It did it, or an error by its number.
    Outcome(i32),
    /// An address, of the interface of that number.
    Address {
        /// The interface.
        interface: u32,
        /// The address.
        address: LabelledAddress,
    },
    /// That was all.
    Done,
}

/// Adds an address with a label; refused where the interface has it already.
pub fn add(interface: u32, address: Ipv4Addr, label: &str) -> Vec<u8> {
    let mut label = label.as_bytes().to_vec();
    label.push(0);
    let attributes = [
        (ATTRIBUTE_LOCAL, address.octets().to_vec()),
        (ATTRIBUTE_ADDRESS, address.octets().to_vec()),
        (ATTRIBUTE_LABEL, label),
    ];
    message(NEW_ADDRESS, REQUEST | ACKNOWLEDGE | CREATE_ONLY, interface, &attributes)
}

/// Takes an address away; refused where the interface does not have it.
pub fn remove(interface: u32, address: Ipv4Addr) -> Vec<u8> {
    let attributes = [(ATTRIBUTE_LOCAL, address.octets().to_vec())];
    message(DELETE_ADDRESS, REQUEST | ACKNOWLEDGE, interface, &attributes)
}

/// Asks for all addresses.
pub fn list() -> Vec<u8> {
    message(GET_ADDRESSES, REQUEST | DUMP, 0, &[])
}

fn message(sort: u16, flags: u16, interface: u32, attributes: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut body = vec![INET, WHOLE_ADDRESS, 0, HOST_SCOPE];
    body.extend(interface.to_ne_bytes());
    for (attribute, value) in attributes {
        let length = u16::try_from(4 + value.len()).expect("addresses and labels are short");
        body.extend(length.to_ne_bytes());
        body.extend(attribute.to_ne_bytes());
        body.extend(value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    let length = u32::try_from(HEAD + body.len()).expect("addresses and labels are short");
    let mut out = length.to_ne_bytes().to_vec();
    out.extend(sort.to_ne_bytes());
    out.extend(flags.to_ne_bytes());
    // One question at a time: there is nothing to tell apart by numbers.
    out.extend([0; 8]);
    out.extend(body);
    out
}

/// Reads what the kernel sent at once.
pub fn read(bytes: &[u8]) -> Vec<KernelAnswer> {
    let mut answers = Vec::new();
    let mut rest = bytes;
    while let Some((sort, body, after)) = next_message(rest) {
        rest = after;
        match sort {
            ERROR => answers.extend(body.first_chunk().map(|code| KernelAnswer::Outcome(-i32::from_ne_bytes(*code)))),
            DONE => answers.push(KernelAnswer::Done),
            NEW_ADDRESS => answers.extend(read_address(body)),
            _ => {}
        }
    }
    answers
}

/// Sort and body of the first message, and what follows it.
fn next_message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let (length, after) = bytes.split_first_chunk::<4>()?;
    let (sort, _) = after.split_first_chunk::<2>()?;
    let length = usize::try_from(u32::from_ne_bytes(*length)).ok()?;
    let body = bytes.get(HEAD..length)?;
    Some((u16::from_ne_bytes(*sort), body, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

fn read_address(body: &[u8]) -> Option<KernelAnswer> {
    let interface = u32::from_ne_bytes(*body.get(4..)?.first_chunk()?);
    let mut address = None;
    let mut label = String::new();
    let mut rest = body.get(ADDRESS_HEAD..)?;
    while let Some((sort, value, after)) = next_attribute(rest) {
        rest = after;
        match sort {
            // The interface's own side, which is the address itself where there is no other side.
            ATTRIBUTE_LOCAL => address = <[u8; 4]>::try_from(value).ok().map(Ipv4Addr::from),
            ATTRIBUTE_LABEL => label.push_str(String::from_utf8_lossy(value).trim_end_matches('\0')),
            _ => {}
        }
    }
    Some(KernelAnswer::Address { interface, address: LabelledAddress { address: address?, label } })
}

fn next_attribute(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let (length, after) = bytes.split_first_chunk::<2>()?;
    let (sort, _) = after.split_first_chunk::<2>()?;
    let length = usize::from(u16::from_ne_bytes(*length));
    let value = bytes.get(4..length)?;
    Some((u16::from_ne_bytes(*sort), value, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 77, 0, 5);

    #[test]
    fn what_is_added_is_told_in_the_form_in_which_the_kernel_tells_it() {
        let mut told = add(7, ADDRESS, "lo:ptlx");
        // The kernel's own message has the sort of what was asked to be made.
        let expected = LabelledAddress { address: ADDRESS, label: "lo:ptlx".to_owned() };
        assert_eq!(read(&told), [KernelAnswer::Address { interface: 7, address: expected.clone() }]);

        told.extend(list_end());
        assert_eq!(read(&told), [KernelAnswer::Address { interface: 7, address: expected }, KernelAnswer::Done]);
    }

    fn list_end() -> Vec<u8> {
        let mut end = list();
        end[4..6].copy_from_slice(&DONE.to_ne_bytes());
        end
    }

    #[test]
    fn an_error_is_read_by_its_number() {
        let mut refused = list();
        refused[4..6].copy_from_slice(&ERROR.to_ne_bytes());
        refused[16..20].copy_from_slice(&(-17_i32).to_ne_bytes());

        assert_eq!(read(&refused), [KernelAnswer::Outcome(17)]);
    }

    #[test]
    fn messages_that_are_cut_say_nothing() {
        let whole = add(7, ADDRESS, "lo:ptlx");
        for length in 0..whole.len() {
            assert_eq!(read(&whole[..length]), [], "{length} bytes");
        }
        let mut without_address = list();
        without_address[4..6].copy_from_slice(&NEW_ADDRESS.to_ne_bytes());
        assert_eq!(read(&without_address), []);
    }

    #[test]
    fn a_length_of_nothing_ends_the_reading() {
        assert_eq!(read(&[0; 64]), []);
        let mut stuck = add(7, ADDRESS, "l");
        stuck[24..26].copy_from_slice(&0_u16.to_ne_bytes());
        assert_eq!(read(&stuck), []);
    }
}
