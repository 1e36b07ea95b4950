# The page of `penchant explore` for anybody who has the address, as a Space of Hugging Face or
# anywhere else: docker build -t penchant . && docker run -p 7860:7860 penchant
FROM python:3.12-slim
RUN useradd --create-home visitor
COPY . /penchant
RUN pip install --no-cache-dir '/penchant[page]'
USER visitor
WORKDIR /home/visitor
EXPOSE 7860
CMD ["penchant", "explore", "--host", "0.0.0.0", "--port", "7860", "--public"]
