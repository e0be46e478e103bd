/* main.c - writes trnmath-vectors: what the engines' arithmetic gives, for anybody who implements it.
 * SPDX-License-Identifier: MIT
 *
 * vectors FOLDER, which has the folders cast, decode, mx, dot, random, function, operator and collective in it already
 * (scripts/vectors.sh makes them). The same bytes every time.
 */
#include "vectors.h"

int main(int argc, char **argv)
{
    if (argc != 2) vec_fail("it takes one argument: the folder to write into");
    vec_folder(argv[1]);
    vec_make_casts();
    vec_make_decodes();
    vec_make_integers();
    vec_make_blocks();
    vec_make_dots();
    vec_make_random();
    vec_make_functions();
    vec_make_operators();
    vec_make_collectives();
    return 0;
}
