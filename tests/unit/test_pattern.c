/* test_pattern.c - names that a configuration chooses: each row as Python's re.match answers it, patterns that are
 * none, patterns that take other engines for ever, and wildcards.
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#if defined(HAVE_PCRE2)

#include "io/pattern.h"

static const struct {
    const char *pattern, *text;
    int found;
} row[] = {
    { "lm_head", "lm_head", 1 },
    { "lm_head", "model.lm_head", 0 },
    { ".*lm_head", "model.lm_head", 1 },
    { "lm_head", "lm_head_2", 1 }, /* not anchored at the end */
    { "lm_head$", "lm_head_2", 0 },
    { "", "anything", 1 },
    { "model\\.layers\\.\\d+\\.mlp\\..*", "model.layers.17.mlp.up_proj", 1 },
    { "model\\.layers\\.\\d+\\.mlp\\..*", "model.layers.17.self_attn.q_proj", 0 },
    { "model.layers.(1[0-9]|2[0-3])\\.", "model.layers.19.mlp", 1 },
    { "model.layers.(1[0-9]|2[0-3])\\.", "model.layers.24.mlp", 0 },
    { "^(?!.*layers\\.0\\.).*proj$", "model.layers.1.mlp.up_proj", 1 },
    { "^(?!.*layers\\.0\\.).*proj$", "model.layers.0.mlp.up_proj", 0 },
    { "(?=.*mlp).*gate$", "layers.3.mlp.gate", 1 },
    { "(?=.*mlp).*gate$", "layers.3.attn.gate", 0 },
    { "(?:a|b)+c", "abbac", 1 },
    { "(?P<layer>[^.]+)\\.x", "ab.x", 1 },
    { "a{2}", "aa", 1 },
    { "a{2}$", "aaa", 0 },
    { "a{2,3}$", "aaa", 1 },
    { "a{,2}$", "aaa", 0 },
    { "a{x}", "a{x}", 1 },
    { "[[:digit:]]", ":]", 1 }, /* no POSIX class */
    { "a.b", "a\rb", 1 },
    { "ab$", "ab\n", 1 },
    { "ab\\Z", "ab\n", 0 },
    { "a*?b", "aaab", 1 },
    { "[]a]+$", "a]", 1 },
    { "[^\\W\\d]+$", "ab_", 1 },
    { "[a-c-]+$", "a-c", 1 },
    { ".*\\bgate\\b", "mlp.gate.weight", 1 },
    { ".*\\bgate\\b", "mlp.gate_proj", 0 },
    { "(?i)LM_head", "lm_HEAD", 1 },
    { "\\Aab\\Z", "ab", 1 },
    { "(a|b|)c", "c", 1 },
    { "(a*)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", 0 },
    { "(a|a|aa)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", 0 },
};

static void as_python(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const char *wrong;
        const int found = pattern_match(row[i].pattern, row[i].text, &wrong);
        if (found != row[i].found) fail_msg("%s on %s: %d (%s)", row[i].pattern, row[i].text, found, wrong);
    }
}

static void what_is_no_pattern(void **state)
{
    static const char *const none[] = {
        "(",     "a)",    "[a",     "*a",      "a**",        "a++",     "\\",  "(?<=a)b", "(a)\\1",
        "(?P<x", "[b-a]", "a{3,2}", "(?#x)a",  "a{9999}{9}", "[a\\",    "\\q", "(?i",     "((a{99}){99}){99}",
        "{2}",   "^*",    "\\b+",   "[\\d-z]", "\\K",        "(*FAIL)",
    };
    char deep[400];
    (void)state;
    memset(deep, '(', sizeof deep);
    deep[sizeof deep - 1] = '\0';
    for (size_t i = 0; i <= sizeof none / sizeof none[0]; i++) {
        const char *wrong = NULL, *pattern = i < sizeof none / sizeof none[0] ? none[i] : deep;
        if (pattern_match(pattern, "abc", &wrong) != -1 || !wrong) fail_msg("%s is taken", pattern);
    }
}

static void wildcards(void **state)
{
    (void)state;
    assert_true(pattern_glob("*lm_head*", "model.lm_head"));
    assert_true(pattern_glob("model.layers.*.mlp.gate", "model.layers.12.mlp.gate"));
    assert_false(pattern_glob("model.layers.*.mlp.gate", "model.layers.12.mlp.gate_proj"));
    assert_true(pattern_glob("model.layers.?.x", "model.layers.1.x"));
    assert_false(pattern_glob("model.layers.?.x", "model.layers.12.x"));
    assert_true(pattern_glob("a*b*c", "a-b-b-c") && pattern_glob("*", "") && pattern_glob("", ""));
    assert_false(pattern_glob("a*b*c", "a-b-b-") || pattern_glob("", "a") || pattern_glob("a", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_python),
        cmocka_unit_test(what_is_no_pattern),
        cmocka_unit_test(wildcards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    printf("PCRE2 is not installed: patterns are not read\n");
    return 0;
}

#endif
