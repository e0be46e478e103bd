# Is there Gappa? Sourced by pairs.sh and exact.sh; a proof that is skipped without being expected fails.
if ! command -v gappa >/dev/null; then
    case " ${TRN_EXPECT_SKIPS:-} " in
    *" gappa "*) echo "SKIP ${0##*/}: gappa is not installed (expected)" && exit 0 ;;
    esac
    echo 'FAILED: gappa is not installed; if that is so on purpose, put gappa into TRN_EXPECT_SKIPS'
    exit 1
fi
