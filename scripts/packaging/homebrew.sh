#!/bin/sh
# Prints a Homebrew formula for an archive of trnmath (git archive --prefix=trnmath/), with its checksum and version.
# Usage: homebrew.sh ARCHIVE [URL], where URL is the place that it can be fetched from (default: the file itself).
set -u

say() {
    printf '%s: %s\n' "$(basename -- "$0")" "$*" >&2
    exit 2
}

[ $# -ge 1 ] && [ $# -le 2 ] || say 'usage: homebrew.sh ARCHIVE [URL]'
[ -f "$1" ] || say "$1: there is no such file"
archive=$(CDPATH= cd -- "$(dirname -- "$1")" && pwd)/$(basename -- "$1")
url=${2:-file://$archive}
case $url in
*[\"\\#]*) say "the URL has a character that Ruby would take for its own" ;;
esac
header=$(tar -tf "$archive" 2>/dev/null | grep -E '(^|/)trnmath/base/base\.h$' | head -n 1)
[ -n "$header" ] || say "$1: it holds no trnmath/base/base.h"
version=$(tar -xOf "$archive" "$header" | sed -n 's/^#define TRN_VERSION "\([0-9.]*\)"$/\1/p')
[ -n "$version" ] || say "$1: its base/base.h tells no version"
if command -v sha256sum >/dev/null; then sum=$(sha256sum "$archive"); else sum=$(shasum -a 256 "$archive"); fi

cat <<FORMULA
class Trnmath < Formula
  desc "What the engines of Trainium compute, as C headers and a library"
  homepage "$url"
  url "$url"
  version "$version"
  sha256 "${sum%% *}"
  license "MIT"

  depends_on "cmake" => [:build, :test]

  def install
    system "cmake", "-S", "trnmath", "-B", "build", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    (testpath/"test.c").write <<~C
      #include <trnmath/trnmath.h>
      int main(void) { return trn_bf16_from_f32(1.0f) == 0x3f80 ? 0 : 1; }
    C
    system ENV.cc, "test.c", "-I#{include}", "-o", "test", "-lm"
    system "./test"
  end
end
FORMULA
