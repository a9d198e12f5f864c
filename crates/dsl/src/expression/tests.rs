use super::Data;
use crate::Code;

/// The JSON text that an expression gives, or why it gives none.
fn over(data: &str, text: &str) -> String {
    let data = Data::parse(data).expect("a JSON object");
    let evaluated = match data.evaluate(text) {
        Ok(evaluated) => evaluated,
        Err(error) => return format!("{} at {}: {}", error.code, error.column, error.message),
    };
    let json = evaluated.value.and_then(|value| value.to_json());
    json.map_or_else(
        |failure| format!("failed: {failure}"),
        |json| json.as_str().to_owned(),
    )
}

fn given(text: &str) -> String {
    over("{}", text)
}

#[test]
fn json_is_read_as_the_language_says() {
    let data = r#"{"input": {"amount": 100, "price": 99.5, "big": 9223372036854775808, "e": 1e3,
        "huge": 1e400, "n": null, "twice": 1, "twice": 2, "t\u0065xt": "a\u00e9\n", "list": [3, 1, 2],
        "lines": [{"sku": "a", "n": 2}, {"sku": "b", "n": 3}], "z": {"b": 1, "a": 2}}}"#;
    let over = |text: &str| over(data, text);
    assert_eq!(over("input.amount * 1.2"), "120.0");
    assert_eq!(over("input.price * input.amount"), "9950.0");
    assert_eq!(over("input.amount - input.price"), "0.5");
    assert_eq!(over("input.price - input.amount"), "-0.5");
    assert_eq!(over("input.amount / 8.0"), "12.5");
    assert_eq!(over("input.price / 2"), "49.75");
    assert_eq!(over("input.amount + input.price"), "199.5");
    assert_eq!(over("input.price + input.amount"), "199.5");
    assert_eq!(
        over("type(input.amount) == int && type(input.e) == double"),
        "true"
    );
    assert_eq!(over("input.big"), "9.223372036854776e18");
    assert_eq!(
        over("input.huge"),
        "failed: the result is out of the range of double"
    );
    assert_eq!(over("input.n == null"), "true");
    assert_eq!(over("input.twice"), "2");
    assert_eq!(over("input.text"), r#""aé\n""#);
    assert_eq!(
        over("input.lines.filter(l, l.n > 2).map(l, l.sku)"),
        r#"["b"]"#
    );
    assert_eq!(over("input.lines[1].sku"), r#""b""#);
    assert_eq!(over("input.z.map(k, k)"), r#"["a","b"]"#);
    assert_eq!(over("input.list == [3, 1, 2] && 1 in input.list"), "true");
    assert_eq!(over("size(input.list) + size(input.z)"), "5");
    assert_eq!(over("has(input.x) && input.x > 1"), "false");
    assert_eq!(over("input.x"), r#"failed: no such key: "x""#);
    assert_eq!(over("input.lines[7]"), "failed: index out of bounds: 7");
    assert_eq!(
        over("input.lines"),
        r#"[{"sku": "a", "n": 2}, {"sku": "b", "n": 3}]"#
    );
    assert_eq!(
        over("'sku' in input.lines[0] && !('x' in input.lines[0])"),
        "true"
    );
    assert_eq!(over(r#"input["amount"] == 100"#), "true");
}

#[test]
fn values_are_written_as_json() {
    assert_eq!(given("3.0"), "3.0");
    assert_eq!(given("1e300"), "1.0e300");
    assert_eq!(given("1.5e-9"), "1.5e-9");
    assert_eq!(
        given("{'a': [1u, true, null], 'b': b'\\xff\\x00'}"),
        r#"{"a":[1,true,null],"b":"/wA="}"#
    );
    assert_eq!(given("{1: 2, true: 3}"), r#"{"true":3,"1":2}"#);
    assert_eq!(
        given("timestamp('2026-03-01T00:00:00.500+01:00')"),
        r#""2026-02-28T23:00:00.5Z""#
    );
    assert_eq!(
        given("duration('1h30m') + duration('500ms')"),
        r#""5400.5s""#
    );
    assert_eq!(given("type(1)"), r#""int""#);
}

#[test]
fn errors_show_where_and_what() {
    let over = |text: &str| over(r#"{"input": 1, "state": 2}"#, text);
    assert_eq!(over("input +"), "E517 at 8: the expression is incomplete");
    assert_eq!(over("input @ 2"), "E517 at 7: unexpected character '@'");
    let escaped = "E517 at 6: unexpected character '\\u{85}'";
    assert_eq!(over("input\u{85}"), escaped);
    assert_eq!(over("inptu > 1"), r#"E513 at 1: there is no name "inptu""#);
    assert_eq!(
        over("input > 1 && stat.x"),
        r#"E513 at 14: there is no name "stat""#
    );
    assert_eq!(
        over("input.map(x, y)"),
        r#"E513 at 14: there is no name "y""#
    );
    assert_eq!(
        over("siez(input)"),
        r#"E517 at 1: there is no function "siez""#
    );
    assert_eq!(over("size()"), "E517 at 1: size does not take 0 arguments");
    assert_eq!(
        over("'a'.matches('[')"),
        "E518 at 13: invalid regular expression: unclosed character class"
    );
    assert_eq!(
        over("'a'.matches(input)"),
        "E518 at 13: expected the pattern of `matches` to be a literal string"
    );
    assert_eq!(
        over("Point{x: 1}"),
        "E517 at 6: messages such as \"Point\" are not supported"
    );
    assert_eq!(
        over("has(input)"),
        "E517 at 5: expected `has` to test a field"
    );
    assert_eq!(over("1e999"), "E517 at 1: invalid double literal");
    assert_eq!(over(""), "E517 at 1: the expression is incomplete");
}

#[test]
fn now_is_the_time_of_the_timestamp_as_in_a_run() {
    let data = r#"{"flo": {"timestamp": 90061000}, "input": {"at": "1970-01-01T00:00:01Z"}}"#;
    assert_eq!(over(data, "flo.now"), r#""1970-01-02T01:01:01Z""#);
    assert_eq!(
        over(data, "flo.now - timestamp(input.at) > duration('25h')"),
        "true"
    );
    assert_eq!(over(data, "flo.timestamp"), "90061000");
    let without = over(r#"{"flo": {"timestamp": "soon"}}"#, "flo.now");
    assert_eq!(without, "failed: no such key: \"now\"");
}

#[test]
fn an_unknown_name_gets_a_suggestion() {
    let data = Data::parse(r#"{"input": 1}"#).unwrap();
    let hint = |text: &str| data.evaluate(text).unwrap_err().hint;
    assert_eq!(hint("inptu").as_deref(), Some("did you mean `input`?"));
    assert_eq!(hint("siez(input)").as_deref(), Some("did you mean `size`?"));
    assert_eq!(
        hint("contains('a', 'b')").as_deref(),
        Some("it is called as `x.contains(…)`")
    );
}

#[test]
fn deep_or_long_expressions_are_refused_without_harm() {
    let data = Data::parse(r#"{"input": 1}"#).unwrap();
    let refused = |text: String| data.evaluate(&text).unwrap_err().code;
    let repeat = |part: &str, count: usize| part.repeat(count);
    for text in [
        format!("1{}", repeat("+1", 2_000)),
        format!("{}1{}", repeat("(", 1_500), repeat(")", 1_500)),
        format!("{}1{}", repeat("-(", 1_300), repeat(")", 1_300)),
        format!("[1]{}", repeat("[0]", 1_300)),
        format!("{}1{}", repeat("[", 2_000), repeat("]", 2_000)),
        format!("{{}}{}", repeat(".a", 2_000)),
        format!("input{}", repeat(".a", 2_000)),
        format!("true{}", repeat("?1:true", 550)),
        repeat("x", 5_000),
    ] {
        assert_eq!(refused(text), Code::E517);
    }
    // A chain of conditions is balanced by the parser.
    let chain = format!("true{}", repeat(" && true", 500));
    assert_eq!(given(&chain), "true");
}

#[test]
fn an_evaluation_has_a_bounded_cost() {
    let exhausted = "failed: the expression costs more than 100000 units";
    let ten = "[1,2,3,4,5,6,7,8,9,10]";
    let nested = |inner: &str| {
        format!("{ten}.all(a, {ten}.all(b, {ten}.all(c, {ten}.all(d, {ten}.all(e, {inner})))))")
    };
    assert_eq!(given(&nested("a + b + c + d + e > 0")), exhausted);
    // An exhausted operand is not absorbed by the other one.
    assert_eq!(given(&format!("{} || true", nested("a > 0"))), exhausted);
    assert_eq!(
        given(&format!("{ten}.exists(x, {} || x == 10)", nested("a > 0"))),
        exhausted
    );
    let text = format!(r#"{{"t": "{}"}}"#, "a".repeat(1 << 20));
    assert_eq!(over(&text, "size(t + t)"), "2097152");
    assert_eq!(
        over(&text, &format!("size({})", vec!["t"; 60].join(" + "))),
        exhausted
    );
    assert_eq!(over(&text, "t.matches('^(a|ab)*c')"), exhausted);
    assert_eq!(over(&text, "t.matches('b')"), "false");
    // What is written is bounded too.
    assert_eq!(
        over(&text, "[t, t]"),
        "failed: the value has more than 1048576 bytes"
    );
}

#[test]
fn patterns_match_as_re2_does() {
    let matches = |text: &str, pattern: &str| {
        let quoted = |text: &str| serde_json::to_string(text).unwrap();
        given(&format!("{}.matches(r'{pattern}')", quoted(text))) == "true"
    };
    for (text, pattern, is_match) in [
        ("order-17", r"^order-\d+$", true),
        ("order-x", r"^order-\d+$", false),
        ("xaby", "a(b|c)y", true),
        ("aaa", "^a{2,3}$", true),
        ("aaaa", "^a{2,3}$", false),
        ("", "^(a|b)*$", true),
        ("ABC", "(?i)abc", true),
        ("ABC", "a(?i)bc", false),
        ("aBC", "a(?i:bc)", true),
        ("é", "^.$", true),
        ("٣", r"^\d$", false),
        ("K", "(?i)^k$", true),
        ("\u{212a}", "(?i)^k$", false),
        ("a b", r"\bb", true),
        ("ab", r"\Bb$", true),
        ("a\nb", "^b", false),
        ("a\nb", "(?m)^b", true),
        ("a\nb", "a.b", false),
        ("a\nb", "(?s)a.b", true),
        ("x]", "^x[]]$", true),
        ("-", "[a-]", true),
        ("b", "[^a]", true),
        ("a", "[^a]", false),
        ("A", "(?i)[^a]", false),
        ("_", "[[:alpha:]]", false),
        ("f", "[[:^digit:]]", true),
        ("7", r"[\D]", false),
        ("", "", true),
        ("anything", "x*", true),
        ("aab", "^(a*)*b$", true),
        ("ab", "a|", true),
    ] {
        assert_eq!(matches(text, pattern), is_match, "{text:?} {pattern:?}");
    }
    for pattern in [
        "(((){900}){900}){900}",
        "(((a{0}){900}){900}){900}",
        "a{1001}",
        "[[a]]",
        "[[:foo:]]",
        r"\pL",
        "(?=a)",
        r"(a)\1",
        "[a&&b]",
        "(?x)a",
        "((a{100}){100}){100}",
        "(){5000}",
    ] {
        let given = given(&format!("'a'.matches(r'{pattern}')"));
        assert!(given.starts_with("E518"), "{pattern}: {given}");
    }
}

#[test]
fn what_an_expression_compares_and_copies_has_a_cost() {
    let exhausted = "failed: the expression costs more than 100000 units";
    let text = format!(
        r#"{{"b": "{}", "l": [{}]}}"#,
        "b".repeat(400_000),
        vec!["1"; 14_000].join(",")
    );
    // Long keys are compared with each other.
    assert_eq!(
        over(
            &text,
            "[{b: 1}].all(m, l.all(x, (b + '1') in m || !((b + '2') in m)))"
        ),
        exhausted
    );
    // An empty text takes as long as one of a character.
    assert_eq!(
        over(&text, "l.all(x, !''.matches('(a?){1000}(a?){1000}b'))"),
        exhausted
    );
    let bytes = format!("l.map(x, b'{}')", "b".repeat(4_000));
    assert_eq!(over(&text, &bytes), exhausted);
}

#[test]
fn further_parts_of_a_large_value_cost_little() {
    let fields: Vec<String> = (0..50)
        .map(|n| format!(r#""f{n}": "{}""#, "x".repeat(20_000)))
        .collect();
    let text = format!(r#"{{"input": {{{}}}}}"#, fields.join(","));
    let all: Vec<String> = (0..50).map(|n| format!("input.f{n} != ''")).collect();
    assert_eq!(over(&text, &all.join(" && ")), "true");
    let list = format!(
        r#"{{"input": [{}]}}"#,
        vec![format!("\"{}\"", "x".repeat(20_000)); 50].join(",")
    );
    let all: Vec<String> = (0..50).map(|n| format!("input[{n}] != ''")).collect();
    assert_eq!(over(&list, &all.join(" && ")), "true");
}

#[test]
fn a_class_is_stored_once() {
    let class: String = (0..300_u32)
        .filter_map(|n| char::from_u32(0x4e00 + 2 * n))
        .collect();
    let compiled = super::pattern::compile(&format!("[{class}]{{1000}}")).unwrap();
    assert_eq!(
        (compiled.instructions.len(), compiled.classes.len()),
        (1_001, 1)
    );
    assert_eq!(compiled.classes[0].0.len(), 300);
    // The patterns of an expression share a bound.
    let twice = "'a'.matches('(a?){1000}(a?){1000}') || 'a'.matches('(b?){1000}')";
    assert!(given(twice).starts_with("E518 at 52"), "{}", given(twice));
}

#[test]
fn numbers_are_written_as_the_rules_say() {
    for (number, written) in [
        ("0.0", "0.0"),
        ("-0.0", "-0.0"),
        ("100.0", "100.0"),
        ("0.1", "0.1"),
        ("-1234.5", "-1234.5"),
        ("9007199254740993.0", "9007199254740992.0"),
        ("9999999999999998.0", "9999999999999998.0"),
        ("1e16", "1.0e16"),
        ("123456789012345680.0", "1.2345678901234568e17"),
        ("1.7976931348623157e308", "1.7976931348623157e308"),
        ("0.00001", "0.00001"),
        ("0.000012", "0.000012"),
        ("0.0000099", "9.9e-6"),
        ("5e-324", "5.0e-324"),
    ] {
        assert_eq!(given(number), written, "{number}");
    }
}

#[test]
fn columns_count_characters_and_calls_begin_with_their_name() {
    assert_eq!(
        given(r#""é" + nope"#),
        r#"E513 at 7: there is no name "nope""#
    );
    assert_eq!(
        given(r#"1 + foo("a")"#),
        r#"E517 at 5: there is no function "foo""#
    );
    assert_eq!(
        given("[1].exists_one(x, y, true)"),
        "E517 at 5: exists_one does not take these arguments"
    );
    assert_eq!(given(r#""\uD800""#), "E517 at 1: invalid literal");
    assert_eq!(
        given("[1].all(.x, true)"),
        "E517 at 10: expected the first argument of all to be a name"
    );
}

#[test]
fn whole_doubles_find_every_whole_key() {
    assert_eq!(
        given("9223372036854775808.0 in {9223372036854775808u: 1}"),
        "true"
    );
    assert_eq!(
        given("-9223372036854775808.0 in {-9223372036854775808: 1}"),
        "true"
    );
    assert_eq!(
        given("[1][18446744073709551615u]"),
        "failed: index out of bounds: 18446744073709551615"
    );
}
