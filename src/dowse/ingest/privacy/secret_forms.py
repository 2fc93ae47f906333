"""Forms of secrets: tokens by their first characters, and structures that pair a name with a value.

Each structure has a literal that a text must hold before its pattern runs, because patterns read slowly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple


class TokenForm(NamedTuple):
    """Form of a token: its first characters and the pattern of the others."""

    starts: tuple[str, ...]
    rest: re.Pattern[str]  # its group `secret` is masked, or else the whole match with the start


class Structure(NamedTuple):
    """Pattern whose group `secret` is masked; it runs on texts that hold the literal, in lower case."""

    literal: str
    pattern: re.Pattern[str]


class LiteralPrefilter(NamedTuple):
    """Words with the same first letter and one pattern for them: faster than a pattern for all."""

    any_of: re.Pattern[str]
    words: tuple[str, ...]


def literal_prefilters(words: Iterable[str]) -> tuple[LiteralPrefilter, ...]:
    by_letter: dict[str, list[str]] = {}
    for word in words:
        by_letter.setdefault(word[0], []).append(word)
    return tuple(
        LiteralPrefilter(re.compile("|".join(map(re.escape, each))), tuple(each)) for each in by_letter.values()
    )


def possible_literals(text: str, prefilters: Iterable[LiteralPrefilter]) -> Iterator[str]:
    """Yield the words that the text holds, and others with the same first letter."""
    for prefilter in prefilters:
        if prefilter.any_of.search(text):
            yield from prefilter.words


def _form(starts: str, rest: str) -> TokenForm:
    return TokenForm(tuple(starts.split()), re.compile(rest))


def _structure(literal: str, pattern: str) -> Structure:
    return Structure(literal, re.compile(pattern.replace("NAMED", _NAMED), re.MULTILINE))


_NAMED = r"(?:password|passwd|passphrase|pwd|secret|token|api[ _-]?key|access[_-]?key|private[_-]?key|credentials?)"

FORMS = (
    _form("ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{30,255}"),
    _form("github_pat_", r"[A-Za-z0-9_]{30,255}"),
    _form(
        "glpat- glrt- glcbt- gldt- glptt- glft- glimt- glagent- glsoat- glffct- gloas- GR1348941",
        r"[A-Za-z0-9_.-]{16,320}",
    ),
    _form("xox", r"[abeoprs][-.][A-Za-z0-9.-]{10,255}"),
    _form("xapp-", r"[0-9]-[A-Za-z0-9-]{20,255}"),
    _form("sk_live_ sk_test_ rk_live_ rk_test_ whsec_ sk_prod_", r"[A-Za-z0-9+/=]{16,255}"),
    _form("sk-", r"(?=[A-Za-z0-9_-]{0,64}[0-9])[A-Za-z0-9_-]{20,255}"),
    _form("ya29. 1//0 GOCSPX-", r"[A-Za-z0-9_-]{20,512}"),
    _form("eyJ", r"[A-Za-z0-9_-]{8,4096}\.eyJ[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{8,2048}"),
    _form("npm_", r"[A-Za-z0-9]{36}\b"),
    _form("pypi-", r"[A-Za-z0-9_-]{40,512}"),
    _form("rubygems_ rdme_", r"[a-z0-9]{40,80}\b"),
    _form("SG.", r"[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}"),
    _form("gsk_ r8_ pplx- xai- vcp_ vck_", r"[A-Za-z0-9]{30,90}\b"),
    _form("dop_v1_ doo_v1_ dor_v1_", r"[a-f0-9]{64}\b"),
    _form("hvs. hvb. hvr.", r"[A-Za-z0-9_-]{20,300}"),
    _form("dckr_pat_ dckr_oat_", r"[A-Za-z0-9_-]{20,64}"),
    _form("shpat_ shpca_ shppa_ shpss_ shptka_", r"[A-Fa-f0-9]{32}\b"),
    _form("glc_ glsa_ sntrys_ sntryu_ ops_", r"[A-Za-z0-9+/_=-]{32,512}"),
    _form("ATATT3 ATCTT3 ATBB ATOA", r"[A-Za-z0-9_=-]{24,255}"),
    _form("AGE-SECRET-KEY-1", r"[A-Z0-9]{50,64}"),
    _form("key-", r"[a-f0-9]{32}\b"),
    _form("dapi dose", r"[a-f0-9]{32}(?:-[0-9])?\b"),
    _form("NRAK- NRII- NRJS- NRAA- NRIQ- NRRA-", r"[A-Za-z0-9_-]{19,64}"),
    _form("lin_api_ lin_oauth_", r"[A-Za-z0-9]{32,80}"),
    _form("sq0atp- sq0csp- EAAAE", r"[A-Za-z0-9_-]{20,80}"),
    _form("EAACEdEose0cBA EAAB EAAC", r"[A-Za-z0-9]{40,300}"),
    _form("SK AC", r"[0-9a-fA-F]{32}\b"),
    _form("xkeysib- xsmtpsib-", r"[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    _form("HRKU-", r"[A-Za-z0-9_-]{30,80}"),
    _form("dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"[A-Za-z0-9._-]{36,80}"),
    _form("sl.", r"[A-Za-z0-9_=-]{60,200}"),
    _form("dt0c01.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    _form("EZAK EZTK", r"[A-Za-z0-9]{54}\b"),
    _form("FLWSECK_TEST- FLWSECK- FLWSECK_", r"[A-Za-z0-9_-]{12,64}"),
    _form("fio-u- figd_ figdr_ nfp_ sbp_ sgp_ tfp_ pnu_ pul- CCIPAT_ bkua_ aio_ CFPAT-", r"[A-Za-z0-9_=-]{28,100}"),
    _form("pat-na1- pat-eu1-", r"[0-9a-f-]{36}\b"),
    _form("ntn_ secret_", r"[A-Za-z0-9]{40,50}\b"),
    _form("oy2", r"[a-z0-9]{43}\b"),
    _form("pscale_tkn_ pscale_pw_ pscale_oauth_", r"[A-Za-z0-9_.=-]{32,64}"),
    _form("PMAK-", r"[a-f0-9]{24}-[a-f0-9]{34}"),
    _form("shippo_live_ shippo_test_", r"[a-f0-9]{40}"),
    _form("tskey-", r"[a-z]{2,10}-[A-Za-z0-9-]{16,80}"),
    _form("CLOJARS_", r"[a-f0-9]{60}"),
    _form("duffel_live_ duffel_test_", r"[A-Za-z0-9_=-]{40,60}"),
    _form("LTAI", r"[A-Za-z0-9]{16,24}\b"),
    _form("AKCp", r"[A-Za-z0-9]{60,80}\b"),
    _form("sk.eyJ pk.eyJ", r"[A-Za-z0-9_-]{20,200}\.[A-Za-z0-9_-]{20,40}"),
    _form("fo1_ fm1_ fm2_", r"[A-Za-z0-9+/=_-]{40,600}"),
    _form("MT MD Mj Mz ND NT Nj Nz OD OT", r"[A-Za-z0-9_-]{21,26}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![\w-])"),
    _form("A3-", r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}\b"),
    _form("p8e- ico-", r"[A-Za-z0-9]{32}\b"),
    _form("pat", r"[A-Za-z0-9]{14}\.[a-f0-9]{64}\b"),
    _form("pat. sat.", r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"),
    _form("cmVmd", r"[A-Za-z0-9]{59}\b"),
    _form("ABSK", r"[A-Za-z0-9+/]{109,269}={0,2}"),
    _form("bedrock-api-key-", r"[A-Za-z0-9+/=]{20,2000}"),
    _form("4b1d", r"[A-Za-z0-9]{38}\b"),
    _form("eyJrIjoi", r"[A-Za-z0-9+/_-]{60,400}={0,3}"),
    _form("ZXlK", r"[A-Za-z0-9+/_-]{80,4096}={0,3}"),
    _form("s-s4t2ud- s-s4t2af-", r"[a-f0-9]{64}"),
    _form("live_ test_ live_pub_ test_pub_", r"[a-f0-9]{31,35}\b"),
    _form("live_ sandbox_", r"(?=[A-Za-z_=-]{0,20}[0-9])[A-Za-z0-9_=-]{40}\b"),
    _form("API-", r"[A-Z0-9]{26}\b"),
    _form("sha256~", r"[\w-]{43}\b"),
    _form("access-sandbox- access-development- access-production-", r"[0-9a-f-]{36}"),
    _form("tk-us-", r"[\w-]{48}"),
    _form("sm_aat_ sm_pat_ sm_sat_", r"[A-Za-z0-9]{16}"),
    _form("squ_ sqp_ sqa_", r"[a-z0-9=_-]{40}"),
    _form("AAAAAAAAAAAAAAAAAAAAAA", r"(?=[A-Z]{0,9}[a-z0-9%])[A-Za-z0-9%]{60,120}"),
    _form("t1.", r"[A-Za-z0-9_-]{8,200}={0,2}\.[A-Za-z0-9_-]{86}={0,2}"),
    _form("dnkey-", r"[A-Za-z0-9=_-]{26}-[A-Za-z0-9=_-]{52}"),
    _form("s.", r"(?=[A-Za-z]{0,22}[0-9])(?=[a-z0-9]{0,22}[A-Z])[A-Za-z0-9]{24}\b"),
    _form("00", r"(?=[a-z0-9_-]{0,30}[A-Z])(?=[A-Z0-9_-]{0,30}[a-z])[\w-]{40}(?![\w-])"),
    _form("$2a$ $2b$ $2y$", r"[0-9]{2}\$[./A-Za-z0-9]{53}"),
    _form("$1$ $5$ $6$ $y$ $apr1$", r"(?:rounds=[0-9]+\$)?[./A-Za-z0-9]{1,32}\$[./A-Za-z0-9]{10,128}"),
    _form("$argon2", r"[id]{1,2}\$[^\s\"']{20,300}"),
    _form("pbkdf2: pbkdf2_sha256$ scrypt:", r"[\w:]{1,40}\$[^\s\"'$]{1,64}\$[A-Za-z0-9+/=]{20,200}"),
    _form("AQVN YCAJ", r"[A-Za-z0-9_-]{20,50}"),
    _form("v1.0-", r"[a-f0-9]{24}-[a-f0-9]{146}"),
)

# Tokens after a word, which may have no digit before a letter.
NAMED_FORMS = (
    _form("AIza", r"(?P<secret>[A-Za-z0-9_-]{35})"),
    _form("AKIA ASIA ABIA ACCA", r"(?P<secret>[0-9A-Z]{16})(?![0-9A-Za-z])"),
    _form("hf_ api_org_", r"(?P<secret>[A-Za-z0-9]{30,40})(?![0-9A-Za-z])"),
    _form("hooks.slack.com/", r"(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9_/+-]{16,128})"),
    _form("discord.com/api/webhooks/ discordapp.com/api/webhooks/", r"[0-9]{10,25}/(?P<secret>[A-Za-z0-9_-]{40,100})"),
    _form("webhook.office.com/webhookb2/", r"(?P<secret>[A-Za-z0-9@/-]{40,300})"),
    _form("bot", r"[0-9]{8,10}:(?P<secret>[A-Za-z0-9_-]{35})(?![\w-])"),
    _form("AccountKey SharedAccessKey SharedAccessSignature", r"=(?P<secret>[A-Za-z0-9+/%&=]{32,256}={0,2})"),
    _form("Bearer bearer BEARER", r"\s{1,4}(?P<secret>(?=\S{0,64}[0-9])[A-Za-z0-9._~+/-]{16,2048}=*)"),
    _form("Basic basic BASIC", r"\s{1,4}(?P<secret>(?=\S{0,64}[0-9])[A-Za-z0-9+/]{12,512}={0,2})(?![\w-])"),
)

# In lower case, and each begins with a literal, which the engine of `re` finds fast.
STRUCTURES = (
    _structure(":5432:", r":5432:[\w.*-]{1,64}:[\w.*-]{1,64}:(?P<secret>[^\s:]{4,256})$"),
    _structure("psk=", r"psk=\"?(?P<secret>[^\s\"]{8,64})"),
    _structure("login", r"login\s{1,8}\S{1,200}\s{1,8}password\s{1,8}(?P<secret>\S{4,256})"),
    _structure("private-lines", r"private-lines: [0-9]{1,4}\n(?P<secret>(?:[a-z0-9+/=]{4,80}\n?)+)"),
    _structure("@tcp(", r"[\"'](?:[\w.-]{1,64}):(?P<secret>[^\s\"'@]{1,128})@(?:tcp|unix)\("),
    _structure("jdbc:oracle", r"jdbc:oracle:\w+:[\w.-]{1,64}/(?P<secret>[^\s\"'@]{1,128})@"),
)

# The same, for lines around random words only: their literals are everywhere.
LINE_STRUCTURES = (
    _structure(
        "chpasswd", r"echo [\"']?[\w.-]{1,64}:(?P<secret>[^\s\"'$]{4,128})[\"']?\s{0,4}\|\s{0,4}(?:sudo )?chpasswd"
    ),
    _structure("auth", r"auth(?<=[\"_]auth)\"?\s{0,4}[:=]\s{0,4}\"?(?P<secret>[a-z0-9+/]{8,512}={0,2})(?=[\"\s]|$)"),
    _structure(":aa", r":(?<=[0-9]{8}:)(?P<secret>aa[a-z0-9_-]{33})(?![\w-])"),
    _structure("sig=", r"sig=(?P<secret>[a-z0-9%+/=]{20,256})"),
    _structure(".atlasv1.", r"\.atlasv1\.(?P<secret>[a-z0-9_=-]{60,70})"),
    _structure("signature=", r"signature=(?P<secret>[a-z0-9%+/=_-]{20,256})"),
    _structure("contribsys", r"contribsys__com\W{1,6}(?P<secret>[a-f0-9]{8}:[a-f0-9]{8})"),
    _structure("_gitlab_session", r"_gitlab_session=(?P<secret>[0-9a-z]{32})"),
    _structure(
        "keytool", r"keytool\b[^\n]{0,200}?\s-(?:store|key)pass[ =]?[\"']?(?P<secret>[^\s\"'$-][^\s\"']{5,256})"
    ),
    _structure("gh secret set", r"gh secret set\b[^\n]{0,99}?\s--body[ =]?[\"']?(?P<secret>[^\s\"'$-][^\s\"']{5,256})"),
    _structure(  # Kubernetes, Compose and task definitions: a name and a value in two fields
        "value",
        r"name\\?[\"']?\s{0,3}:\s{0,3}\\?[\"']?[\w.-]{0,80}NAMED\w{0,20}\\?[\"']?,?\s{1,80}\\?[\"']?value\\?[\"']?"
        r"\s{0,3}:\s{0,3}\\?[\"']?(?P<secret>[^\s\"',}\\]{6,512})",
    ),
    _structure("</", r"<[\w.:-]{0,60}NAMED>\s{0,8}(?P<secret>[^<\s][^<\n]{4,256})</"),
    _structure("env ", r"env[ \t]{1,4}\w{0,60}NAMED\w{0,10}[ \t]{1,4}(?P<secret>\S{6,256})"),
    _structure(
        "variable",
        r"variable\s{1,8}\"[\w-]{0,60}(?:NAMED|key)[\w-]{0,20}\"\s{0,8}\{[^}]{0,400}?default\s{0,20}=\s{0,4}"
        r"\"(?P<secret>[^\"\n]{6,256})\"",
    ),
    _structure(":", r":(?:[0-9]{4,5}|\*):[\w.*-]{1,64}:[\w.*-]{1,64}:(?P<secret>[^\s:]{4,256})$"),
    _structure(
        "|",
        r"\|\s{0,20}`?[\w .-]{0,40}NAMED[\w .-]{0,20}`?\s{0,40}\|\s{0,20}`?"
        r"(?P<secret>(?=[^\s|`]{0,64}[0-9])(?=[^\s|`]{0,64}[a-z])[^\s|`]{8,128})`?\s{0,40}\|",
    ),
    _structure("set", r"set_?\w{0,30}NAMED\(\s{0,8}[\"'](?P<secret>[^\"'\s]{6,256})[\"']"),
    _structure("8q~", r"8q~(?P<secret>[\w~.-]{31,34})(?![\w~.-])"),
    _structure("_mmk", r"(?<![a-z0-9])(?P<secret>[a-z0-9]{6}_[a-z0-9]{29}_mmk)\b"),
    _structure("|", r"(?<![0-9])(?P<secret>[0-9]{15,16}\|[a-z0-9_-]{27,40})(?![\w-])"),
    _structure("-", r"(?<![a-z0-9])(?P<secret>[a-h0-9]{32}-[a-h0-9]{8}-[a-h0-9]{8})(?![\w-])"),
    _structure("@", r"://(?P<secret>(?=[a-z_-]{0,40}[0-9])[a-z0-9_-]{12,128})@"),
    _structure("hook", r"hook[^\n]{0,40}https?://[^\s\"'/]{1,100}/[^\s\"']{0,100}?(?P<secret>[\w-]{24,256})(?![\w/-])"),
    _structure("-us1", r"(?<![0-9a-f])(?P<secret>[0-9a-f]{32}-us1[0-9]?)\b"),
    _structure("-us2", r"(?<![0-9a-f])(?P<secret>[0-9a-f]{32}-us2[0-9]?)\b"),
)

# Commands with a flag for a password, for texts that hold one of the flags.
TOOL_FLAGS = (" -p", " -u", "--user", " -a ", " -w ", "-stdin")
TOOL_STRUCTURES = (
    *(
        _structure(tool, tool + r"\b[^\n|;]{0,200}?\s" + flag + r"[ =]?[\"']?(?P<secret>[^\s\"'$-][^\s\"']{5,256})")
        for tool, flag in (
            ("docker login", "-p"),
            ("podman login", "-p"),
            ("az login", "-p"),
            ("twine upload", "-p"),
            ("redis-cli", "-a"),
            ("ldapsearch", "-w"),
            ("ldapmodify", "-w"),
            ("ldapadd", "-w"),
            ("7z a", "-p"),
            ("smbclient", r"-u [\"']?[\w.\\/-]{1,64}%"),
            ("sqlcmd", "-p"),
        )
    ),
    _structure("-stdin", r"echo (?:-n )?[\"']?(?P<secret>[^\s\"'$]{6,256})[\"']?\s{0,4}\|[^\n]{0,80}-stdin"),
    _structure("zip -p", r"zip -p ?[\"']?(?P<secret>[^\s\"'$]{6,256})"),
    _structure("curl", r"curl\b[^\n]{0,300}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"'$]{1,80}:(?P<secret>[^\s\"'$]{4,256})"),
    _structure("mysql", r"mysql\w{0,8}\b[^\n]{0,200}?\s-p[\"']?(?P<secret>[^\s\"'$-][^\s\"']{4,128})"),
    _structure("sshpass", r"sshpass\b[^\n]{0,200}?\s-p[\"' ]?(?P<secret>[^\s\"'$-][^\s\"']{4,128})"),
)

# A start of two characters, as in `00` and `SK`, also begins names that are hashes.
_IN_NAME = tuple((start, form.rest) for form in (*FORMS, *NAMED_FORMS) for start in form.starts if len(start) > 2)
_LONG_RUN = re.compile("[A-Za-z0-9]{12}")  # few paths have one, and every walk tests all paths


def token_in_name(name: str) -> str:
    """Return a token in the path of a file, or an empty text."""
    if not _LONG_RUN.search(name):
        return ""
    for start, rest in _IN_NAME:
        at = name.find(start)
        if at >= 0 and not name[at - 1 : at].isalnum() and (found := rest.match(name, at + len(start))):
            return name[at : found.end()]
    return ""
