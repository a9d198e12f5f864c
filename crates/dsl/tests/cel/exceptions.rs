//! The conformance cases that do not pass, and why.

/// Why cases do not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// An unknown name or function is refused when the workflow is created, so no evaluation can ignore it.
    CheckedAtCreate,
    /// An int and a double are compared exactly, as the language definition says; these cases round the int.
    ComparedExactly,
    /// Time functions know UTC and fixed offsets only, because time zone databases change.
    NamedTimeZone,
    /// A result that is infinite or not a number fails the evaluation, because JSON cannot express it.
    NotFinite,
}

/// Cases that do not pass.
pub(crate) struct Exception {
    pub(crate) reason: Reason,
    pub(crate) file: &'static str,
    pub(crate) section: &'static str,
    pub(crate) names: &'static [&'static str],
}

pub(crate) const EXCEPTIONS: &[Exception] = &[
    Exception {
        reason: Reason::CheckedAtCreate,
        file: "basic",
        section: "variables",
        names: &["unbound_is_runtime_error"],
    },
    Exception {
        reason: Reason::CheckedAtCreate,
        file: "parse",
        section: "receiver_function_names",
        names: &[
            "as",
            "break",
            "const",
            "continue",
            "else",
            "for",
            "function",
            "if",
            "import",
            "let",
            "loop",
            "package",
            "namespace",
            "return",
            "var",
            "void",
            "while",
        ],
    },
    Exception {
        reason: Reason::ComparedExactly,
        file: "comparisons",
        section: "lt_literal",
        names: &["not_lt_dyn_int_big_lossy_double"],
    },
    Exception {
        reason: Reason::ComparedExactly,
        file: "comparisons",
        section: "gt_literal",
        names: &["not_gt_dyn_big_double_int"],
    },
    Exception {
        reason: Reason::ComparedExactly,
        file: "comparisons",
        section: "lte_literal",
        names: &["lte_dyn_big_double_int"],
    },
    Exception {
        reason: Reason::ComparedExactly,
        file: "comparisons",
        section: "gte_literal",
        names: &["gte_dyn_int_big_lossy_double"],
    },
    Exception {
        reason: Reason::NamedTimeZone,
        file: "timestamps",
        section: "timestamp_selectors_tz",
        names: &[
            "getDate",
            "getDayOfMonth_name_pos",
            "getDayOfMonth_name_neg",
            "getDayOfYear",
            "getMinutes",
        ],
    },
    Exception {
        reason: Reason::NotFinite,
        file: "comparisons",
        section: "bound",
        names: &[
            "double_nan_eq_self_false",
            "double_nan_ne_self_true",
            "list_of_bound_nan_eq_false",
            "list_of_bound_nan_ne_true",
            "bound_list_nan_eq_self_false",
            "bound_list_nan_ne_self_true",
            "bound_map_nan_eq_self_false",
            "bound_map_nan_ne_self_true",
        ],
    },
    Exception {
        reason: Reason::NotFinite,
        file: "comparisons",
        section: "eq_literal",
        names: &[
            "not_eq_double_nan",
            "not_eq_double_nan_left",
            "not_eq_double_nan_right",
            "not_eq_int_double_nan",
            "not_eq_double_nan_int",
            "not_eq_uint_double_nan",
            "not_eq_double_nan_uint",
            "not_eq_list_double_nan",
            "not_eq_nested_list_double_nan",
            "not_eq_nested_list_map_double_nan",
            "not_eq_map_double_nan",
            "not_eq_nested_map_list_double_nan",
        ],
    },
    Exception {
        reason: Reason::NotFinite,
        file: "comparisons",
        section: "ne_literal",
        names: &[
            "not_ne_double_nan",
            "ne_double_nan_left",
            "ne_double_nan_right",
            "not_ne_int_double_nan",
            "ne_double_nan_int",
            "not_ne_uint_double_nan",
            "ne_double_nan_uint",
            "ne_double_nan",
            "ne_list_double_nan",
            "ne_nested_list_double_nan",
            "ne_nested_list_map_double_nan",
            "ne_map_double_nan",
            "ne_nested_map_list_double_nan",
        ],
    },
    Exception {
        reason: Reason::NotFinite,
        file: "comparisons",
        section: "lt_literal",
        names: &[
            "not_lt_double_nan",
            "not_lt_double_nan_left",
            "not_lt_double_nan_right",
            "not_lt_dyn_double_nan_int",
            "not_lt_dyn_int_double_nan",
            "not_lt_dyn_double_nan_uint",
            "not_lt_dyn_uint_double_nan",
        ],
    },
    Exception {
        reason: Reason::NotFinite,
        file: "comparisons",
        section: "gt_literal",
        names: &[
            "not_gt_double_nan",
            "not_gt_double_nan_left",
            "not_gt_double_nan_right",
            "not_gt_dyn_double_nan_int",
            "not_gt_dyn_int_double_nan",
            "not_gt_dyn_double_nan_uint",
            "not_gt_dyn_uint_double_nan",
        ],
    },
    Exception {
        reason: Reason::NotFinite,
        file: "comparisons",
        section: "lte_literal",
        names: &[
            "not_lte_double_nan",
            "not_lte_double_nan_left",
            "not_lte_double_nan_right",
            "not_lte_dyn_double_nan_int",
            "not_lte_dyn_int_double_nan",
            "not_lte_dyn_double_nan_uint",
            "not_lte_dyn_uint_double_nan",
        ],
    },
    Exception {
        reason: Reason::NotFinite,
        file: "comparisons",
        section: "gte_literal",
        names: &[
            "not_gte_double_nan",
            "not_gte_double_nan_left",
            "not_gte_double_nan_right",
            "not_gte_dyn_double_nan_int",
            "not_gte_dyn_int_double_nan",
            "not_gte_dyn_double_nan_uint",
            "not_gte_dyn_uint_double_nan",
        ],
    },
    Exception {
        reason: Reason::NotFinite,
        file: "comparisons",
        section: "in_list_literal",
        names: &[
            "nan_not_in_list",
            "nested_list_nan_not_in_list",
            "nested_map_nan_not_in_list",
        ],
    },
    Exception {
        reason: Reason::NotFinite,
        file: "comparisons",
        section: "in_map_literal",
        names: &["nan_not_in_map"],
    },
    Exception {
        reason: Reason::NotFinite,
        file: "fp_math",
        section: "fp_math",
        names: &[
            "divide_zero",
            "fp_overflow_positive",
            "fp_overflow_negative",
        ],
    },
];
