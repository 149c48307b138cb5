//! Questions and answers → datagrams, and what is made of those that are cut or wrong.

use super::*;

fn query(name: &str, kind: RecordKind) -> ResolverQuery {
    read_query(&write_question(7, name, kind)).unwrap()
}

fn a_record(name: &str, last: u8) -> ResolverRecord {
    let content = RecordContent::A(Ipv4Addr::new(127, 77, 0, last));
    ResolverRecord { name: name.to_owned(), seconds: 5, content }
}

fn reply(answers: Vec<ResolverRecord>) -> ResolverReply {
    ResolverReply { code: ReplyCode::NoError, answers, authority: Vec::new(), additional: Vec::new() }
}

#[test]
fn a_question_is_read_whatever_its_letters_are_and_goes_back_as_it_came() {
    let query = query("Web.Shop.svc", kinds::A);

    assert_eq!((query.id, query.name.as_str(), query.kind, query.most_bytes), (7, "web.shop.svc", kinds::A, 512));
    let written = write_reply(&query, &reply(Vec::new()), 512);
    assert!(written.windows(3).any(|bytes| bytes == b"Web"), "the case is kept");
}

#[test]
fn a_client_says_how_much_it_takes() {
    let mut bytes = write_question(7, "web", kinds::A);
    bytes[11] = 1;
    bytes.extend([0, 0, 41, 0x10, 0, 0, 0, 0, 0, 0, 0]);

    let query = read_query(&bytes).unwrap();

    assert_eq!(query.most_bytes, 4096);
    let written = write_reply(&query, &reply(Vec::new()), 4096);
    assert_eq!((written[11], written.len()), (1, 12 + 9 + 11));
}

#[test]
fn an_answer_holds_addresses_that_another_resolver_reads() {
    let query = query("web.shop", kinds::A);
    let written = write_reply(&query, &reply(vec![a_record("web.shop", 1), a_record("other", 2)]), 512);

    let expected = [1, 2].map(|last| RecordContent::A(Ipv4Addr::new(127, 77, 0, last)));
    assert_eq!(read_addresses(&written, 7), expected);
    assert_eq!(read_addresses(&written, 8), []);
}

#[test]
fn an_answer_that_is_too_long_says_so_and_is_whole_by_tcp() {
    let query = query("web.shop", kinds::A);
    let many = reply((1..=100).map(|last| a_record("web.shop", last)).collect());

    let short = write_reply(&query, &many, query.most_bytes);
    let whole = write_reply(&query, &many, 65_535);

    assert_eq!((short.len(), short[2] & 2, read_addresses(&short, 7).len()), (26, 2, 0));
    assert_eq!((whole[2] & 2, read_addresses(&whole, 7).len()), (0, 100));
}

#[test]
fn what_is_no_question_gets_no_answer_and_what_is_a_bad_one_is_refused() {
    let mut answer = write_question(7, "web", kinds::A);
    answer[2] |= 0x80;
    assert_eq!(read_query(&answer), Err(NotAsked::Noise));
    assert_eq!(read_query(&[0, 7]), Err(NotAsked::Noise));
    let mut update = write_question(7, "web", kinds::A);
    update[2] |= 5 << 3;
    assert_eq!(read_query(&update), Err(NotAsked::Refused { id: 7, code: ReplyCode::NotImplemented }));
}

#[test]
fn a_question_that_is_cut_anywhere_is_refused_or_noise() {
    let whole = write_question(7, "web.shop.svc.cluster.local", kinds::A);
    for length in 0..whole.len() {
        assert!(read_query(&whole[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn names_that_point_elsewhere_or_have_no_end_are_refused() {
    let refused = Err(NotAsked::Refused { id: 7, code: ReplyCode::FormatError });
    let mut pointing = write_question(7, "", kinds::A);
    pointing.splice(12..13, [0xC0, 12]);
    assert_eq!(read_query(&pointing), refused);
    let mut endless = write_question(7, "", kinds::A)[..12].to_vec();
    endless.extend([1, b'a'].repeat(200));
    endless.extend([0, 0, 1, 0, 1]);
    assert_eq!(read_query(&endless), refused);
}

#[test]
fn names_too_long_to_be_written_are_cut_at_a_label() {
    let mut out = Vec::new();
    write_name(&mut out, &format!("a.{}.b", "x".repeat(64)));
    assert_eq!(out, [1, b'a', 0]);
}
