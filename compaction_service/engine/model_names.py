"""Which models a summariser's name may mean: those of providers that are called with the tenant's key and nothing else.

The others that litellm knows read credentials of the process, speak to a fixed port of its machine, take the name for a
URL, or were not looked at. Every provider of litellm is in one of the two lists, so that a new one is not called by
chance.
"""

from __future__ import annotations

_CALLED = """
    anthropic cerebras cohere cohere_chat dashscope deepinfra deepseek fireworks_ai gemini groq hosted_vllm
    litellm_proxy minimax mistral moonshot nvidia_nim openai openrouter perplexity sambanova together_ai xai zai
"""
_NOT_CALLED = """
    a2a a2a_agent abliteration ai21 ai21_chat aiand aihubmix aiml aiohttp_openai amazon_nova anthropic_text apertis
    assemblyai auto_router aws_polly aws_textract azure azure_ai azure_speech azure_text baseten bedrock
    bedrock_mantle bespoke bigmodel black_forest_labs bytez charity_engine chatgpt chutes clarifai clf_ai_gateway
    cloudflare codestral cognition cometapi compactifai coralbricks cortecs crusoe cursor custom custom_openai
    darkbloom databricks databricks_agent datarobot deepgram docker_model_runner dotprompt edenai elevenlabs
    empiriolabs empower eu_jev fal_ai featherless_ai friendliai galadriel gdc gigachat github github_copilot gmi
    gradient_ai helicone heroku hostinger_router huggingface humanloop hyperbolic inception inferenceapis infinity
    jina_ai kyma lambda_ai langflow langfuse langgraph laya lemonade libertai litellm_agent llamafile llamagate
    lm_studio manus maritalk meta meta_llama microsoft_365_copilot milvus modelscope mongodb morph nace nadir
    nano-gpt nebius neosantara nlp_cloud novita nscale nvidia_riva oci ollama ollama_chat oobabooga openai_like
    opencode_go openinfer opensearch ovhcloud parallel_ai parasail petals pg_vector pinstripes poe predibase prism
    publicai qwen_ai_platform qwencloud ragflow recraft reducto refuseless reka replicate runwayml s3_vectors
    sagemaker sagemaker_chat sagemaker_nova sail sap sarvam scaledown scaleway scx-ai snowflake soniox stability
    strands_decider streamlake synthetic tencent tensormesh text-completion-codestral text-completion-inception
    text-completion-openai topaz transcribe triton typesafe v0 valkey veniceai vercel_ai_gateway vertex_ai
    vertex_ai_beta vllm volcengine voyage wally wandb watsonx watsonx_text xiaomi_mimo xinference zerogpu
"""
PROVIDERS = frozenset(_CALLED.split())
NOT_CALLED = frozenset(_NOT_CALLED.split())
BY_URL = frozenset(("hosted_vllm", "litellm_proxy"))  # have no public address of their own: only with an `api_base`


def split(name: str) -> tuple[str | None, str]:
    """The provider that the name begins with, None without any, and the rest."""
    prefix, _, rest = name.partition("/")
    return (prefix, rest) if rest and prefix in PROVIDERS | NOT_CALLED else (None, name)


def problem(name: str) -> str | None:
    """A sentence on why this name cannot be called, for its owner; None for one that can be."""
    if "://" in name:
        return "Must be the name of a model, not a URL; a server of your own is set by summarizer.api_base."
    provider, _ = split(name)
    if provider in NOT_CALLED:
        return (
            f"Models of this provider are not called, but those of {', '.join(sorted(PROVIDERS))}. "
            "A server of your own takes any name after openai/."
        )
    return None
