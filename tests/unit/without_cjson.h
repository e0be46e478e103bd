/* without_cjson.h - the test of a file whose others read configurations, where cJSON is not installed.
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_WITHOUT_CJSON_H
#define TEST_WITHOUT_CJSON_H

static void without_cjson(void **state)
{
    (void)state;
    print_message("cJSON is not installed: configurations are not read\n");
    skip();
}

#endif /* TEST_WITHOUT_CJSON_H */
