"""The peer of llm.py: the serving of open-dataflow 1.0.13 over the same prompts.

Run by the interpreter of an environment with open-dataflow: INPUT URL WORKERS.
"""

import json
import sys

from dataflow.serving.api_llm_serving_request import APILLMServing_request

source, url, workers = sys.argv[1:4]
with open(source, encoding="utf-8") as file:
    prompts = [json.loads(line)["text"] for line in file]
serving = APILLMServing_request(api_url=url, model_name="m", max_workers=int(workers))
answers = serving.generate_from_input(prompts, system_prompt="")
if len(answers) != len(prompts) or not all(answers):
    raise SystemExit(f"{sum(map(bool, answers))} answers for {len(prompts)} prompts")
