//! The functions that rules may call, as a table of text: `string.startsWith(string) bool`.
//!
//! Functions that are left out here would be refused when a definition is made, so the table holds all of them. `A` and
//! `B` stand for any type, the same one each time.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::types::Type;

/// One overload of a function.
pub(super) struct Signature {
    pub(super) receiver: Option<Type<'static>>,
    pub(super) arguments: Vec<Type<'static>>,
    pub(super) result: Type<'static>,
}

const TABLE: &str = "
_==_(A, A) bool
_!=_(A, A) bool
!_(bool) bool
-_(int) int
-_(double) double
_?_:_(bool, A, A) A
@not_strictly_false(bool) bool
@in(A, list(A)) bool
@in(A, map(A, B)) bool
_[_](list(A), int) A
_[_](map(A, B), A) B
_[_](optional(list(A)), int) optional(A)
_[_](optional(map(A, B)), A) optional(B)
_[?_](list(A), int) optional(A)
_[?_](map(A, B), A) optional(B)
_[?_](optional(list(A)), int) optional(A)
_[?_](optional(map(A, B)), A) optional(B)
_+_(int, int) int
_+_(uint, uint) uint
_+_(double, double) double
_+_(string, string) string
_+_(bytes, bytes) bytes
_+_(list(A), list(A)) list(A)
_+_(timestamp, duration) timestamp
_+_(duration, timestamp) timestamp
_+_(duration, duration) duration
_-_(int, int) int
_-_(uint, uint) uint
_-_(double, double) double
_-_(timestamp, timestamp) duration
_-_(timestamp, duration) timestamp
_-_(duration, duration) duration
_*_(int, int) int
_*_(uint, uint) uint
_*_(double, double) double
_/_(int, int) int
_/_(uint, uint) uint
_/_(double, double) double
_%_(int, int) int
_%_(uint, uint) uint
size(string) int
size(bytes) int
size(list(A)) int
size(map(A, B)) int
string.size() int
bytes.size() int
list(A).size() int
map(A, B).size() int
type(A) type
dyn(A) dyn
bool(bool) bool
bool(string) bool
int(int) int
int(uint) int
int(double) int
int(string) int
int(timestamp) int
int(duration) int
uint(uint) uint
uint(int) uint
uint(double) uint
uint(string) uint
double(double) double
double(int) double
double(uint) double
double(string) double
string(string) string
string(bool) string
string(int) string
string(uint) string
string(double) string
string(bytes) string
string(timestamp) string
string(duration) string
string(net.IP) string
string(net.CIDR) string
bytes(bytes) bytes
bytes(string) bytes
timestamp(timestamp) timestamp
timestamp(string) timestamp
timestamp(int) timestamp
duration(duration) duration
duration(string) duration
duration(int) duration
string.contains(string) bool
string.startsWith(string) bool
string.endsWith(string) bool
@matches(string, string) bool
timestamp.getFullYear() int
timestamp.getFullYear(string) int
timestamp.getMonth() int
timestamp.getMonth(string) int
timestamp.getDayOfYear() int
timestamp.getDayOfYear(string) int
timestamp.getDayOfMonth() int
timestamp.getDayOfMonth(string) int
timestamp.getDate() int
timestamp.getDate(string) int
timestamp.getDayOfWeek() int
timestamp.getDayOfWeek(string) int
timestamp.getHours() int
timestamp.getHours(string) int
duration.getHours() int
timestamp.getMinutes() int
timestamp.getMinutes(string) int
duration.getMinutes() int
timestamp.getSeconds() int
timestamp.getSeconds(string) int
duration.getSeconds() int
timestamp.getMilliseconds() int
timestamp.getMilliseconds(string) int
duration.getMilliseconds() int
string.charAt(int) string
string.indexOf(string) int
string.indexOf(string, int) int
string.lastIndexOf(string) int
string.lastIndexOf(string, int) int
string.lowerAscii() string
string.upperAscii() string
string.trim() string
string.replace(string, string) string
string.replace(string, string, int) string
string.split(string) list(string)
string.split(string, int) list(string)
string.substring(int) string
string.substring(int, int) string
string.format(list(dyn)) string
@shown(list(dyn)) list(dyn)
strings.quote(string) string
list(string).join() string
list(string).join(string) string
optional.of(A) optional(A)
optional.ofNonZeroValue(A) optional(A)
optional.none() optional(A)
optional(A).hasValue() bool
optional(A).value() A
optional(A).or(optional(A)) optional(A)
optional(A).orValue(A) A
_?._(dyn, string) optional(dyn)
list(A).first() optional(A)
list(A).last() optional(A)
optional.unwrap(list(optional(A))) list(A)
list(optional(A)).unwrapOpt() list(A)
list(A).isSorted() bool
list(int).sum() int
list(uint).sum() uint
list(double).sum() double
list(duration).sum() duration
list(A).min() A
list(A).max() A
list(A).indexOf(A) int
list(A).lastIndexOf(A) int
list(A).slice(int, int) list(A)
list(list(A)).flatten() list(A)
list(dyn).flatten(int) list(dyn)
list(A).distinct() list(A)
list(A).reverse() list(A)
list(A).sort() list(A)
list(A).@sortByAssociatedKeys(list(B)) list(A)
lists.range(int) list(int)
sets.contains(list(A), list(A)) bool
sets.equivalent(list(A), list(A)) bool
sets.intersects(list(A), list(A)) bool
string.find(string) string
string.findAll(string) list(string)
string.findAll(string, int) list(string)
url(string) kubernetes.URL
isURL(string) bool
kubernetes.URL.getScheme() string
kubernetes.URL.getHost() string
kubernetes.URL.getHostname() string
kubernetes.URL.getPort() string
kubernetes.URL.getEscapedPath() string
kubernetes.URL.getQuery() map(string, list(string))
quantity(string) kubernetes.Quantity
isQuantity(string) bool
sign(kubernetes.Quantity) int
kubernetes.Quantity.sign() int
kubernetes.Quantity.isGreaterThan(kubernetes.Quantity) bool
kubernetes.Quantity.isLessThan(kubernetes.Quantity) bool
kubernetes.Quantity.compareTo(kubernetes.Quantity) int
kubernetes.Quantity.asApproximateFloat() double
kubernetes.Quantity.asInteger() int
kubernetes.Quantity.isInteger() bool
kubernetes.Quantity.add(kubernetes.Quantity) kubernetes.Quantity
kubernetes.Quantity.add(int) kubernetes.Quantity
kubernetes.Quantity.sub(kubernetes.Quantity) kubernetes.Quantity
kubernetes.Quantity.sub(int) kubernetes.Quantity
ip(string) net.IP
isIP(string) bool
ip.isCanonical(string) bool
net.IP.family() int
net.IP.isUnspecified() bool
net.IP.isLoopback() bool
net.IP.isLinkLocalMulticast() bool
net.IP.isLinkLocalUnicast() bool
net.IP.isGlobalUnicast() bool
cidr(string) net.CIDR
isCIDR(string) bool
net.CIDR.containsIP(string) bool
net.CIDR.containsIP(net.IP) bool
net.CIDR.containsCIDR(string) bool
net.CIDR.containsCIDR(net.CIDR) bool
net.CIDR.ip() net.IP
net.CIDR.prefixLength() int
net.CIDR.masked() net.CIDR
format.named(string) optional(kubernetes.NamedFormat)
format.dns1123Label() kubernetes.NamedFormat
format.dns1123Subdomain() kubernetes.NamedFormat
format.dns1035Label() kubernetes.NamedFormat
format.qualifiedName() kubernetes.NamedFormat
format.dns1123LabelPrefix() kubernetes.NamedFormat
format.dns1123SubdomainPrefix() kubernetes.NamedFormat
format.dns1035LabelPrefix() kubernetes.NamedFormat
format.labelValue() kubernetes.NamedFormat
format.uri() kubernetes.NamedFormat
format.uuid() kubernetes.NamedFormat
format.byte() kubernetes.NamedFormat
format.date() kubernetes.NamedFormat
format.datetime() kubernetes.NamedFormat
kubernetes.NamedFormat.validate(string) optional(list(string))
semver(string) kubernetes.Semver
semver(string, bool) kubernetes.Semver
isSemver(string) bool
isSemver(string, bool) bool
kubernetes.Semver.isGreaterThan(kubernetes.Semver) bool
kubernetes.Semver.isLessThan(kubernetes.Semver) bool
kubernetes.Semver.compareTo(kubernetes.Semver) int
kubernetes.Semver.major() int
kubernetes.Semver.minor() int
kubernetes.Semver.patch() int
@pairs(list(A)) list(pair(int, A))
@pairs(map(A, B)) list(pair(A, B))
@pair(A, B) pair(A, B)
@key(pair(A, B)) A
@value(pair(A, B)) B
@mapOfPairs(list(pair(A, B))) map(A, B)
@mapOfMaps(list(A)) A
";

/// Types that can be compared with `<` and its kin; numbers with each other as well.
const ORDERED: [&str; 8] = ["bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration"];
const NUMBERS: [&str; 3] = ["int", "uint", "double"];

static FUNCTIONS: LazyLock<HashMap<String, Vec<Signature>>> = LazyLock::new(|| {
    let mut functions: HashMap<String, Vec<Signature>> = HashMap::new();
    let comparisons = ["_<_", "_<=_", "_>_", "_>=_"].iter().flat_map(|operator| {
        let same = ORDERED.iter().map(move |t| format!("{operator}({t}, {t}) bool"));
        let mixed = NUMBERS.iter().flat_map(move |a| {
            NUMBERS.iter().filter(move |b| a != *b).map(move |b| format!("{operator}({a}, {b}) bool"))
        });
        same.chain(mixed)
    });
    for line in TABLE.lines().map(str::to_owned).chain(comparisons).filter(|line| !line.is_empty()) {
        let (name, signature) = parse(&line);
        functions.entry(name).or_default().push(signature);
    }
    functions
});

/// The overloads of a function; `None` where there is no such function.
pub(super) fn of(name: &str) -> Option<&'static [Signature]> {
    FUNCTIONS.get(name).map(Vec::as_slice)
}

fn parse(line: &str) -> (String, Signature) {
    let (call, result) = split_result(line);
    let open = matching_open(call);
    let (head, arguments) = (&call[..open], &call[open + 1..call.len() - 1]);
    let arguments = split_arguments(arguments).into_iter().map(read).collect();
    let dot = head.rfind('.').filter(|at| *at > 0);
    // `sets.contains` is one name, `string.contains` a receiver and a name.
    let (receiver, name) = match dot {
        Some(at) if is_type(&head[..at]) => (Some(read(&head[..at])), &head[at + 1..]),
        _ => (None, head),
    };
    (name.to_owned(), Signature { receiver, arguments, result: read(result) })
}

/// The space that no parenthesis encloses.
fn split_result(line: &str) -> (&str, &str) {
    let end = line.rfind(") ").map_or(line.len(), |_| {
        let mut depth = 0i32;
        let space = line.char_indices().filter_map(|(at, c)| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            (c == ' ' && depth == 0).then_some(at)
        });
        space.last().unwrap_or(line.len())
    });
    (&line[..end], line.get(end + 1..).unwrap_or("dyn"))
}

fn matching_open(call: &str) -> usize {
    let mut depth = 0i32;
    for (at, c) in call.char_indices().rev() {
        depth += i32::from(c == ')') - i32::from(c == '(');
        if depth == 0 {
            return at;
        }
    }
    0
}

fn split_arguments(text: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut parts) = (0i32, 0, Vec::new());
    for (at, c) in text.char_indices() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if c == ',' && depth == 0 {
            parts.push(text[begin..at].trim());
            begin = at + 1;
        }
    }
    if !text[begin..].trim().is_empty() {
        parts.push(text[begin..].trim());
    }
    parts
}

fn is_type(text: &str) -> bool {
    !matches!(text, "optional" | "sets" | "lists" | "strings" | "format" | "ip" | "math")
}

fn read(text: &str) -> Type<'static> {
    if let Some((name, inner)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        let mut inner = split_arguments(inner).into_iter().map(read);
        let mut next = || inner.next().unwrap_or(Type::Dyn);
        return match name {
            "list" => Type::list(next()),
            "optional" => Type::optional(next()),
            "pair" => {
                let key = next();
                Type::pair(key, next())
            }
            _ => {
                let keys = next();
                Type::map(keys, next())
            }
        };
    }
    match text {
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        "type" => Type::OfTypes,
        "A" => Type::Parameter('A'),
        "B" => Type::Parameter('B'),
        "kubernetes.URL" => Type::Opaque("kubernetes.URL"),
        "kubernetes.Quantity" => Type::Opaque("kubernetes.Quantity"),
        "kubernetes.NamedFormat" => Type::Opaque("kubernetes.NamedFormat"),
        "kubernetes.Semver" => Type::Opaque("kubernetes.Semver"),
        "net.IP" => Type::Opaque("net.IP"),
        "net.CIDR" => Type::Opaque("net.CIDR"),
        _ => Type::Dyn,
    }
}
