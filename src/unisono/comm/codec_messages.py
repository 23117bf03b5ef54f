"""The messages about codecs that a call allows (codec_choice.py), and about the rate of links."""

from __future__ import annotations

from unisono.message import Template

CODEC_ONE_HOST = Template(
    "comm.codec_one_host", "no codec: the ranks are on one host", "不用编解码器：所有 rank 在同一主机上"
)
CODEC_RATE_UNKNOWN = Template(
    "comm.codec_rate_unknown",
    'no codec: the rate of the links between the hosts is not known; hint: connect(link_rate="measure"), or a number '
    "of bytes per second",
    '不用编解码器：不知道主机之间链路的速率；建议：connect(link_rate="measure")，或给出每秒字节数',
)
CODEC_OTHER_TYPE = Template(
    "comm.codec_other_type",
    "no codec: codecs encode {encoded}, not {dtype}",
    "不用编解码器：编解码器只编码 {encoded}，不编码 {dtype}",
)
CODEC_PAYS = Template(
    "comm.codec_pays",
    "codec {codec}: on links of {rate} Gbit/s it saves {saved} of {link} µs, and encoding takes {coding} µs",
    "编解码器 {codec}：在 {rate} Gbit/s 的链路上可从 {link} µs 中节省 {saved} µs，编码需要 {coding} µs",
)
CODEC_DOES_NOT_PAY = Template(
    "comm.codec_does_not_pay",
    "no codec: on links of {rate} Gbit/s, {codec} saves {saved} of {link} µs, less than {times} times the {coding} "
    "µs that encoding takes",
    "不用编解码器：在 {rate} Gbit/s 的链路上，{codec} 可从 {link} µs 中节省 {saved} µs，不到编码所需 {coding} µs 的 "
    "{times} 倍",
)
CODEC_PAYS_BELOW = Template(
    "comm.codec_pays_below",
    "{codec} pays off on links between hosts slower than {rate} Gbit/s",
    "主机间链路低于 {rate} Gbit/s 时，{codec} 才划算",
)
CODEC_NEVER_PAYS = Template(
    "comm.codec_never_pays", "{codec} does not pay off at any link speed", "无论链路速率如何，{codec} 都不划算"
)
AUTO_HAS_NO_EFFECT = Template("comm.auto_has_no_effect", "codec={codec!r}: {reason}", "codec={codec!r}：{reason}")
BAD_LINK_RATE = Template(
    "comm.bad_link_rate",
    'link_rate={rate}; expected a number of bytes per second, more than 0, or "measure"',
    'link_rate={rate}；应为大于 0 的每秒字节数，或 "measure"',
)
CODEC_NOT_AGREED = Template(
    "comm.codec_not_agreed",
    "no codec: with {codec}, the ranks would not get the same bits from the algorithm that the call names",
    "不用编解码器：使用 {codec} 时，调用指定的算法不能使各 rank 得到相同的结果位",
)
EXPLANATION_WITH_CODEC = Template("comm.explanation_with_codec", "{explanation}; {reason}", "{explanation}；{reason}")
NOT_AUTO = Template(
    "comm.not_auto",
    "codec {codec} is used by every call that names it; expected a codec that a call only allows, such as "
    "'auto:bf16'",
    "编解码器 {codec} 总是被使用；应为调用所允许的编解码器，例如 'auto:bf16'",
)
