//! Status and body of an answer → result and page information, or an [`ApiError`]. Pure.
//!
//! Every answer of the API is `{success, errors, messages, result, result_info}`. What is not (a proxy's HTML page, nothing,
//! half a document) was not said by the API: it is transient, whatever its status.

use http::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::call::error::{ApiError, Effect, ErrorClass, classify};
use crate::call::redact::redact;

/// A successful answer, its result read as `R`.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer<R = Value> {
    /// `result`; the default where it is null or missing.
    pub result: R,
    /// `result_info`.
    pub info: PageInfo,
}

/// Where a page stands in its listing. Every field may be missing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PageInfo {
    /// Page number, from 1.
    pub page: Option<u64>,
    /// Objects a page.
    pub per_page: Option<u64>,
    /// Objects on this page.
    pub count: Option<u64>,
    /// Objects in all.
    pub total_count: Option<u64>,
    /// Pages in all.
    pub total_pages: Option<u64>,
    /// Where to go on.
    pub cursor: Option<String>,
    /// Where to go on, in another spelling.
    pub cursors: Option<Cursors>,
}

/// The other spelling of a cursor.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Cursors {
    /// Cursor of the next page.
    pub after: Option<String>,
}

impl PageInfo {
    /// The cursor of the next page, if there is one.
    pub fn next_cursor(&self) -> Option<&str> {
        let cursor = self.cursor.as_deref().or_else(|| self.cursors.as_ref()?.after.as_deref());
        cursor.filter(|cursor| !cursor.is_empty())
    }
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>"))]
struct Envelope<R> {
    success: Option<bool>,
    #[serde(default)]
    errors: Option<Vec<ErrorEntry>>,
    #[serde(default)]
    result: Option<R>,
    #[serde(default)]
    result_info: Option<Value>,
}

/// One error as the API tells it.
#[derive(Deserialize)]
struct ErrorEntry {
    #[serde(default)]
    code: Option<Value>,
    #[serde(default)]
    message: Option<Value>,
    #[serde(default)]
    error_chain: Option<Vec<ErrorEntry>>,
    #[serde(default)]
    source: Option<Blamed>,
}

#[derive(Deserialize)]
struct Blamed {
    #[serde(default)]
    pointer: Option<String>,
}

/// Reads an answer to a request by `method`; `secrets` never show in an error's message. A refusal's `result` does not
/// matter, so it need not fit `R`.
pub fn read<R>(method: &Method, status: u16, body: &[u8], secrets: &[&str]) -> Result<Answer<R>, ApiError>
where
    R: DeserializeOwned + Default,
{
    portolan_core::waypoint!();
    let good = (200..300).contains(&status);
    if status == 204 {
        return Ok(Answer { result: R::default(), info: PageInfo::default() });
    }
    if good
        && let Ok(envelope) = serde_json::from_slice::<Envelope<R>>(body)
        && envelope.success.unwrap_or(envelope.result.is_some())
    {
        return Ok(answer(envelope));
    }
    match serde_json::from_slice::<Envelope<Value>>(body) {
        Ok(envelope) if !good || envelope.success == Some(false) => Err(refusal(method, status, &envelope, secrets)),
        _ => Err(unreadable(method, status, body)),
    }
}

fn answer<R: Default>(envelope: Envelope<R>) -> Answer<R> {
    let info = envelope.result_info.and_then(|info| serde_json::from_value(info).ok()).unwrap_or_default();
    Answer { result: envelope.result.unwrap_or_default(), info }
}

fn refusal(method: &Method, status: u16, envelope: &Envelope<Value>, secrets: &[&str]) -> ApiError {
    let mut told = Sayings::default();
    told.take(envelope.errors.as_deref().unwrap_or_default());
    let class = classify(status, &told.codes, &told.texts.join("; "));
    let text = if told.texts.is_empty() {
        format!("Cloudflare answered HTTP {status} without saying why")
    } else {
        told.texts.join("; ")
    };
    ApiError {
        class,
        status: Some(status),
        codes: told.codes,
        message: redact(&text, secrets),
        pointers: told.pointers,
        retry_after: None,
        effect: effect(method, status, class),
    }
}

fn unreadable(method: &Method, status: u16, body: &[u8]) -> ApiError {
    let what = match body.trim_ascii_start().first() {
        None => "an empty answer",
        Some(b'<') => "an HTML page instead of JSON",
        Some(b'{') => "JSON that is cut short or not the API's",
        Some(_) => "an answer that is not JSON",
    };
    let class = if status == 429 { ErrorClass::RateLimit } else { ErrorClass::Transient };
    ApiError {
        class,
        status: Some(status),
        ..ApiError::transient(format!("{what} (HTTP {status})"), effect(method, status, class))
    }
}

/// A refusal by the API itself has no effect; a failure on the way, or a success that cannot be read, may have one.
fn effect(method: &Method, status: u16, class: ErrorClass) -> Effect {
    let read = method == Method::GET || method == Method::HEAD;
    match class {
        _ if read => Effect::None,
        ErrorClass::Transient if !(400..500).contains(&status) || status == 408 => Effect::Unknown,
        _ => Effect::None,
    }
}

#[derive(Default)]
struct Sayings {
    codes: Vec<u64>,
    texts: Vec<String>,
    pointers: Vec<String>,
}

impl Sayings {
    fn take(&mut self, errors: &[ErrorEntry]) {
        for error in errors {
            let code = error.code.as_ref().and_then(number);
            let text = error.message.as_ref().and_then(Value::as_str).unwrap_or("no message").trim_end_matches('.');
            self.texts.push(match code {
                Some(code) => format!("{text} ({code})"),
                None => text.to_owned(),
            });
            self.codes.extend(code);
            self.pointers.extend(error.source.as_ref().and_then(|source| source.pointer.clone()));
            self.take(error.error_chain.as_deref().unwrap_or_default());
        }
    }
}

/// Some products of the API write their codes as strings.
fn number(code: &Value) -> Option<u64> {
    code.as_u64().or_else(|| code.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read_json(status: u16, body: &Value) -> Result<Answer, ApiError> {
        read(&Method::POST, status, body.to_string().as_bytes(), &["s3cret-token"])
    }

    #[test]
    fn a_success_gives_result_and_page() {
        let body = json!({"success": true, "errors": [], "result": [1], "result_info": {"page": 1, "total_pages": 3}});

        let answer = read_json(200, &body).unwrap();

        assert_eq!(answer.result, json!([1]));
        assert_eq!(answer.info.total_pages, Some(3));
    }

    #[test]
    fn success_false_with_status_200_is_an_error_by_its_code() {
        let body =
            json!({"success": false, "errors": [{"code": 81058, "message": "An identical record already exists."}]});

        let error = read_json(200, &body).unwrap_err();

        assert_eq!((error.class, error.effect), (ErrorClass::Conflict, Effect::None));
        assert_eq!(error.message, "An identical record already exists (81058)");
    }

    #[test]
    fn words_in_a_server_error_do_not_change_its_class() {
        let body = json!({"success": false, "errors": [{"code": 1, "message": "404 invalid conflict"}]});

        assert_eq!(read_json(500, &body).unwrap_err().class, ErrorClass::Transient);
    }

    #[test]
    fn what_the_api_did_not_say_is_transient_and_short() {
        for body in ["", "<html>Bad gateway</html>", r#"{"success": tr"#, "nonsense", "{}"] {
            let error = read::<Value>(&Method::POST, 200, body.as_bytes(), &[]).unwrap_err();

            assert_eq!((error.class, error.effect), (ErrorClass::Transient, Effect::Unknown), "{body}");
            assert!(error.message.len() < 80);
        }
    }

    #[test]
    fn an_html_page_with_status_404_does_not_prove_absence() {
        let error = read::<Value>(&Method::DELETE, 404, b"<html>not here</html>", &[]).unwrap_err();

        assert_eq!(error.class, ErrorClass::Transient);
    }

    #[test]
    fn a_failed_read_has_no_effect() {
        assert_eq!(read::<Value>(&Method::GET, 502, b"", &[]).unwrap_err().effect, Effect::None);
    }

    #[test]
    fn the_token_is_masked_while_code_and_message_survive() {
        let body = json!({"success": false, "errors": [{"code": 9109, "message": "Invalid token s3cret-token here"}]});

        assert_eq!(read_json(403, &body).unwrap_err().message, "Invalid token [redacted] here (9109)");
    }

    #[test]
    fn chained_errors_and_pointers_are_kept() {
        let body = json!({"success": false, "errors": [{"code": 1004, "message": "DNS Validation Error",
            "source": {"pointer": "/posts/2"}, "error_chain": [{"code": "9005", "message": "Content invalid"}]}]});

        let error = read_json(400, &body).unwrap_err();

        assert_eq!(error.codes, [1004, 9005]);
        assert_eq!(error.pointers, ["/posts/2"]);
        assert_eq!(error.message, "DNS Validation Error (1004); Content invalid (9005)");
    }

    #[test]
    fn both_spellings_of_a_cursor_are_read() {
        let of = |info: Value| serde_json::from_value::<PageInfo>(info).unwrap().next_cursor().map(str::to_owned);

        assert_eq!(of(json!({"cursor": "a"})).as_deref(), Some("a"));
        assert_eq!(of(json!({"cursors": {"after": "b"}})).as_deref(), Some("b"));
        assert_eq!(of(json!({"cursor": ""})), None);
    }
}
